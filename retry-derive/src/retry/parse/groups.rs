//! Options written `key(..)`: patterns, names, and groups of keys.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, Ident, LitStr, Pat, Token};

use super::values::{Owner, number};
use super::{bind_known, report, skip_to_comma, until_comma};
use crate::diag::Diag;
use crate::names::nearest;
use crate::retry::model::{Binding, Case, Class, DeadLetter, Journal, Ledger, Numbers, Options};
use crate::retry::table;
use crate::value;

pub(super) fn arguments(diag: &Diag, key: &Ident, content: TokenStream) -> Option<Vec<Ident>> {
    let parser = Punctuated::<Ident, Token![,]>::parse_terminated_with;
    let parse = |input: ParseStream<'_>| parser(input, Ident::parse_any);
    let names = parse.parse2(content.clone()).ok();
    if names.is_none() {
        diag.error(content, format!("`{key}(..)` takes names of arguments, such as `{key}(body)`"));
    }
    names.map(|names| names.into_iter().collect())
}

/// Patterns, separated by commas or bars, each with a guard if wanted.
pub(super) fn cases(input: ParseStream<'_>) -> syn::Result<Vec<Case>> {
    let mut cases = Vec::new();
    while !input.is_empty() {
        let pattern = Pat::parse_multi_with_leading_vert(input)?;
        let guard = if input.peek(Token![if]) {
            input.parse::<Token![if]>()?;
            Some(input.parse()?)
        } else {
            None
        };
        cases.push(Case { pattern, guard });
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(cases)
}

/// Reads `key = VALUE, ..` of a group; each value goes to `take`, in the order written. False after a mistake: what is
/// missing then need not be said.
fn parts(
    diag: &Diag,
    group: &Ident,
    names: &[&'static str],
    content: TokenStream,
    mut take: impl FnMut(&'static str, &Ident, Expr),
) -> bool {
    let parser = |input: ParseStream<'_>| {
        let (mut whole, mut only) = (true, true);
        while !input.is_empty() {
            let only = std::mem::take(&mut only);
            if part(diag, group, names, only, input, &mut take).is_none() {
                whole = false;
                skip_to_comma(input)?;
            } else if !input.is_empty() && !input.peek(Token![,]) {
                whole = false;
                let rest: TokenTree = input.fork().parse()?;
                diag.error(&rest, format!("a comma is expected between two parts of `{group}(..)`"));
                skip_to_comma(input)?;
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(whole)
    };
    parser.parse2(content).unwrap_or_else(|error| {
        diag.syn_error(error);
        false
    })
}

fn part(
    diag: &Diag,
    group: &Ident,
    names: &[&'static str],
    only: bool,
    input: ParseStream<'_>,
    take: &mut impl FnMut(&'static str, &Ident, Expr),
) -> Option<()> {
    if !input.peek(Ident::peek_any) {
        diag.error(
            until_comma(&input.fork()),
            format!("`{group}(..)` takes `key = value` with the keys {}", names.join(", ")),
        );
        return None;
    }
    let key = report(diag, input.call(Ident::parse_any))?;
    let word = key.to_string();
    let Some(name) = names.iter().copied().find(|name| *name == word) else {
        let first = names.first().copied().unwrap_or_default();
        if only && input.is_empty() {
            diag.error(&key, format!("`{group}(..)` takes `key = value`"))
                .help(format!("for example `{group}({first} = {word})`"));
            return None;
        }
        let near = nearest(&word, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        diag.error(&key, format!("unknown key `{word}` in `{group}(..)`{near}"))
            .help(format!("the keys of `{group}(..)` are {}", names.join(", ")));
        return None;
    };
    if name == table::JOURNAL && (input.is_empty() || input.peek(Token![,])) {
        let word = syn::Path::from(key.clone());
        take(name, &key, Expr::Path(syn::ExprPath { attrs: Vec::new(), qself: None, path: word }));
        return Some(());
    }
    if !input.peek(Token![=]) || input.peek(Token![==]) {
        let form = if name == table::JOURNAL { "stands alone, or is written `journal = required`" } else { "" };
        if form.is_empty() {
            diag.error(&key, format!("`{name}` needs a value: `{name} = ..`"));
        } else {
            diag.error(&key, format!("`{name}` {form}"));
        }
        return None;
    }
    report(diag, input.parse::<Token![=]>())?;
    if input.is_empty() || input.peek(Token![,]) {
        diag.error(&key, format!("`{name} =` has no value"));
        return None;
    }
    let value = report(diag, input.parse::<Expr>())?;
    take(name, &key, value);
    Some(())
}

pub(super) fn dead_letter(diag: &Diag, options: &mut Options, group: &Ident, content: TokenStream) -> DeadLetter {
    let mut letter = DeadLetter::default();
    let mut read = true;
    let whole = parts(diag, group, table::DEAD_LETTER, content, |name, key, expr| {
        if name == table::JOURNAL {
            match journal(diag, &expr) {
                Some(journal) => letter.journal.set(diag, key, journal),
                None => read = false,
            }
            return;
        }
        options.bindings.push(Binding { name, class: None, expr: expr.clone() });
        match name {
            "sink" => letter.sink.set(diag, key, expr),
            "job_id" => letter.job_id.set(diag, key, expr),
            "payload" => letter.payload.set(diag, key, expr),
            _ => letter.model.set(diag, key, expr),
        }
    });
    letter.broken = !whole || !read;
    letter
}

/// `journal`, or `journal = required`
fn journal(diag: &Diag, value: &Expr) -> Option<Journal> {
    let word = if let Expr::Path(path) = value { path.path.get_ident().map(ToString::to_string) } else { None };
    match word.as_deref() {
        Some(table::JOURNAL) => Some(Journal::Wanted),
        Some("required") => Some(Journal::Required),
        _ => {
            diag.error(value, "`journal` takes no value but `required`")
                .help("write `journal`, or `journal = required`: then a job that cannot be written down does not run");
            None
        }
    }
}

pub(super) fn ledger(diag: &Diag, options: &mut Options, group: &Ident, content: TokenStream) -> Ledger {
    let mut ledger = Ledger::default();
    let whole = parts(diag, group, table::LEDGER, content, |name, key, expr| match name {
        "skipped" => ledger.skipped.set(diag, key, expr),
        "max_attempts" => {
            if let Some(count) = value::count(diag, "max_attempts", expr) {
                bind_known(&mut options.bindings, None, "max_attempts", &count);
                ledger.max_attempts.set(diag, key, count);
            }
        }
        _ => {
            let (binding, slot) = match name {
                "store" => ("store", &mut ledger.store),
                "key" => ("key", &mut ledger.key),
                _ => ("scope", &mut ledger.scope),
            };
            options.bindings.push(Binding { name: binding, class: None, expr: expr.clone() });
            slot.set(diag, key, expr);
        }
    });
    ledger.broken = !whole;
    ledger
}

/// `class(NAME, key = VALUE, ..)`
pub(super) fn class(diag: &Diag, options: &mut Options, group: &Ident, content: TokenStream) -> Option<Class> {
    let index = options.classes.len();
    let (name, rest) = class_name(diag, group, content)?;
    if options.classes.iter().any(|other| other.name.value() == name.value()) {
        diag.error(&name, format!("duplicate class `{}`: it is given more than once", name.value()))
            .help("write all of its keys in one `class(..)`");
    }
    let mut numbers = Numbers::default();
    let bindings = &mut options.bindings;
    let mut read = true;
    let whole = parts(diag, group, table::NUMBERS, rest, |_, key, expr| {
        let mut owner = Owner { numbers: &mut numbers, bindings: &mut *bindings, class: Some(index) };
        read &= number(diag, &mut owner, key, expr).is_some();
    });
    Some(Class { name, numbers, broken: !whole || !read })
}

/// The class, and what follows the comma behind it.
fn class_name(diag: &Diag, group: &Ident, content: TokenStream) -> Option<(LitStr, TokenStream)> {
    const FORM: &str = "`class(..)` begins with the name of a failure class";
    const EXAMPLE: &str = "for example `class(rate_limit, max_retries = 5)`";
    let parser = |input: ParseStream<'_>| {
        let first = until_comma(input);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok((first, input.parse::<TokenStream>()?))
    };
    let (first, rest) = report(diag, parser.parse2(content))?;
    let name = match syn::parse2::<LitStr>(first.clone()) {
        Ok(text) => text,
        Err(_) => match Ident::parse_any.parse2(first.clone()) {
            Ok(word) => {
                let text = word.to_string();
                LitStr::new(text.strip_prefix("r#").unwrap_or(&text), word.span())
            }
            Err(_) => {
                let place = if first.is_empty() { group.to_token_stream() } else { first };
                diag.error(place, FORM).help(EXAMPLE);
                return None;
            }
        },
    };
    let value = name.value();
    let plain = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    if value.is_empty() || !value.chars().all(plain) {
        diag.error(&name, format!("`{value}` is no class: it is a name, of letters, digits, `_`, `-` and `.`"))
            .help(EXAMPLE);
        return None;
    }
    Some((name, rest))
}
