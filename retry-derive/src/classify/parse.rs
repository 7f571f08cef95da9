//! `#[classify(..)]` attributes as words with values. Each word is judged alone here: whether it exists, whether it may
//! stand where it stands, and the form of its value. How words fit together is judged in `check`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, ExprPath, LitStr, Member, Meta, Path, Token};

use super::table::{DISPOSITIONS, Entry, Form, Place, Word, meant};
use super::tokens::flat;
use crate::diag::Diag;
use crate::names::one_of;

/// What the attributes of one enum, struct, variant or field say.
#[derive(Default)]
pub(super) struct Said {
    /// The words in order.
    pub(super) items: Vec<Item>,
    /// Something here was reported already, so that what is missing may be what was meant.
    pub(super) broken: bool,
}

/// One word.
pub(super) struct Item {
    pub(super) entry: &'static Entry,
    pub(super) key: Ident,
    pub(super) value: Value,
}

/// What stands behind a word.
pub(super) enum Value {
    None,
    Text(LitStr),
    Member(Member),
    Path(ExprPath),
    Disposition(Word),
    Crate(Path),
}

/// Reads all `#[classify(..)]` of one place.
pub(super) fn attributes(attributes: &[Attribute], place: Place, diag: &Diag) -> Said {
    let mut said = Said::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("classify")) {
        let Meta::List(list) = &attribute.meta else {
            let what = if matches!(attribute.meta, Meta::Path(_)) { "says nothing" } else { "takes a list" };
            diag.error(&attribute.meta, format!("`classify` {what} here: expected `{}`", place.example()))
                .help(words_help(place));
            said.broken = true;
            continue;
        };
        if list.tokens.is_empty() {
            diag.error(&attribute.meta, format!("`classify` says nothing here: expected `{}`", place.example()))
                .help(words_help(place));
            said.broken = true;
            continue;
        }
        if !matches!(list.delimiter, syn::MacroDelimiter::Paren(_)) {
            diag.error(&attribute.meta, format!("`classify` takes round brackets: `{}`", place.example()));
            said.broken = true;
        }
        let read = |input: ParseStream<'_>| {
            words(input, place, &mut said, diag);
            Ok(())
        };
        if let Err(error) = read.parse2(flat(list.tokens.clone())) {
            diag.syn_error(error);
            said.broken = true;
        }
    }
    said
}

/// Reads a list of words; after a mistake it goes on behind the next comma.
fn words(input: ParseStream<'_>, place: Place, said: &mut Said, diag: &Diag) {
    while !input.is_empty() {
        match word(input, place, diag) {
            Some(item) if input.is_empty() || input.peek(Token![,]) => said.items.push(item),
            Some(item) => {
                let rest = until_comma(input);
                diag.error(first(rest), format!("expected `,` behind `{}`", item.entry.name));
                said.items.push(item);
                said.broken = true;
            }
            None => {
                until_comma(input);
                said.broken = true;
            }
        }
        let _comma = input.parse::<Option<Token![,]>>();
    }
}

/// Reads one word and its value; `None` once reported.
fn word(input: ParseStream<'_>, place: Place, diag: &Diag) -> Option<Item> {
    let Ok(key) = input.call(Ident::parse_any) else {
        let comma = input.span();
        no_word(&until_comma(input), comma, place, diag);
        return None;
    };
    let typed = key.unraw().to_string();
    let Some(entry) = Entry::of(&typed) else {
        until_comma(input);
        unknown(&key, &typed, place, diag);
        return None;
    };
    if !entry.places.contains(&place) {
        until_comma(input);
        misplaced(&key, entry, place, diag);
        return None;
    }
    value(input, &key, entry, place, diag).map(|value| Item { entry, key, value })
}

fn no_word(tokens: &TokenStream, comma: Span, place: Place, diag: &Diag) {
    let quoted = syn::parse2::<LitStr>(tokens.clone()).ok().map(|text| text.value());
    match quoted.as_deref().and_then(Entry::of) {
        Some(entry) => {
            diag.error(tokens, format!("expected a word, found a string: write `{}` without quotes", entry.name));
        }
        None if tokens.is_empty() => {
            diag.error_at(comma, "expected a word, found a comma");
        }
        None => {
            diag.error(first(tokens.clone()), "expected a word").help(words_help(place));
        }
    }
}

fn unknown(key: &Ident, typed: &str, place: Place, diag: &Diag) {
    if let Some(near) = meant(typed, place) {
        diag.error(key, format!("unknown word `{typed}`; did you mean `{near}`?"));
    } else {
        diag.error(key, format!("unknown word `{typed}`")).help(words_help(place));
    }
}

fn misplaced(key: &Ident, entry: &Entry, place: Place, diag: &Diag) {
    let reported =
        diag.error(key, format!("`{}` belongs on {}, not on {}", entry.name, entry.belongs(), place.phrase()));
    match place {
        Place::Enum if entry.word.is_disposition() => {
            reported.help(format!("for all variants that say nothing: `#[classify(default = {})]`", entry.name));
        }
        Place::Struct if entry.word == Word::Default => {
            reported.help("a struct is one case; say what it is: `#[classify(permanent)]`");
        }
        Place::Field => {
            reported.help(words_help(place));
        }
        _ => {}
    }
}

fn value(input: ParseStream<'_>, key: &Ident, entry: &'static Entry, place: Place, diag: &Diag) -> Option<Value> {
    let bare = input.is_empty() || input.peek(Token![,]);
    let no_value = entry.form == Form::Bare || (place == Place::Field && entry.places.contains(&Place::Field));
    if no_value {
        if bare {
            return Some(Value::None);
        }
        if !input.peek(Token![=]) && !input.peek(syn::token::Paren) {
            // the caller says that a comma is missing
            return Some(Value::None);
        }
        let rest = until_comma(input);
        let name = entry.name;
        if place == Place::Field {
            diag.error(rest, format!("`{name}` on a field takes no value: it means this field"));
        } else {
            diag.error(rest, format!("`{name}` takes no value: write `{name}` alone"));
        }
        return None;
    }
    if bare && entry.form == Form::FieldOrOnly {
        return Some(Value::None);
    }
    if !input.peek(Token![=]) {
        let rest = until_comma(input);
        let message = format!("`{}` needs a value: `{}`", entry.name, entry.example);
        let reported = if rest.is_empty() { diag.error(key, message) } else { diag.error(rest, message) };
        if entry.places.contains(&Place::Field) {
            reported.help(format!("or write `#[classify({})]` on the field itself", entry.name));
        }
        return None;
    }
    let equals = input.parse::<Token![=]>().ok()?;
    if input.is_empty() || input.peek(Token![,]) {
        diag.error(equals, format!("`{}` needs a value: `{}`", entry.name, entry.example));
        return None;
    }
    match entry.form {
        Form::Text => text(input, entry, diag),
        Form::Field | Form::FieldOrOnly => member(input, entry, diag),
        Form::Path => path(input, entry, diag),
        Form::Disposition => disposition(input, diag),
        Form::Crate => krate(input, diag),
        Form::Bare => None,
    }
}

/// A class: it stands in letters as `permanent:CLASS` and labels metrics, so it is one plain word.
fn text(input: ParseStream<'_>, entry: &Entry, diag: &Diag) -> Option<Value> {
    let name = entry.name;
    let Ok(text) = alone::<LitStr>(input) else {
        let rest = until_comma(input);
        let quoted = rest.to_string();
        let reported = diag.error(rest, format!("`{name}` expects a name in quotes: `{}`", entry.example));
        if syn::parse_str::<Ident>(&quoted).is_ok() {
            reported.help(format!("write `{name} = \"{quoted}\"`"));
        }
        return None;
    };
    let value = text.value();
    if value.is_empty() {
        diag.error(text, format!("`{name}` may not be empty")).help("without it the class is the name in snake_case");
        return None;
    }
    if let Some(wrong) = value.chars().find(|letter| !(letter.is_alphanumeric() || "_-.".contains(*letter))) {
        diag.error(
            text,
            format!("`{name}` may not hold {wrong:?}: it is a name, of letters, digits, `_`, `-` and `.`"),
        )
        .help(format!("it stands in letters as `permanent:CLASS` and labels metrics: `{}`", entry.example));
        return None;
    }
    Some(Value::Text(text))
}

fn member(input: ParseStream<'_>, entry: &Entry, diag: &Diag) -> Option<Value> {
    let fork = input.fork();
    let found = if fork.peek(syn::LitInt) {
        fork.parse::<syn::Index>().map(Member::Unnamed)
    } else {
        fork.call(Ident::parse_any).map(Member::Named)
    };
    if let (Ok(member), true) = (found, ends(&fork)) {
        input.advance_to(&fork);
        return Some(Value::Member(member));
    }
    let rest = until_comma(input);
    let reported =
        diag.error(&rest, format!("`{}` expects the name of a field, or its number: `{}`", entry.name, entry.example));
    if let Ok(text) = syn::parse2::<LitStr>(rest) {
        reported.help(format!("write `{} = {}` without quotes", entry.name, text.value()));
    }
    None
}

fn path(input: ParseStream<'_>, entry: &Entry, diag: &Diag) -> Option<Value> {
    if let Ok(path) = alone(input) {
        return Some(Value::Path(path));
    }
    let rest = until_comma(input);
    let wanted = if entry.word == Word::With { "a function `fn(&Self) -> Verdict`" } else { "a `StatusRules`" };
    let reported = diag.error(&rest, format!("`{}` expects the path of {wanted}: `{}`", entry.name, entry.example));
    if let Ok(text) = syn::parse2::<LitStr>(rest) {
        reported.help(format!("write `{} = {}` without quotes", entry.name, text.value()));
    }
    None
}

fn disposition(input: ParseStream<'_>, diag: &Diag) -> Option<Value> {
    let names: Vec<&str> = DISPOSITIONS.iter().map(|(_, name, _)| *name).collect();
    let rest = until_comma(input);
    let typed = rest.to_string();
    if let Some((word, ..)) = DISPOSITIONS.iter().find(|(_, name, _)| *name == typed) {
        return Some(Value::Disposition(*word));
    }
    let near = crate::names::nearest(&typed, &names);
    let message = format!("`default` expects {}", one_of(&names));
    match near {
        Some(near) => diag.error(rest, format!("{message}; did you mean `{near}`?")),
        None => diag.error(rest, message),
    };
    None
}

fn krate(input: ParseStream<'_>, diag: &Diag) -> Option<Value> {
    crate::value::krate(diag, until_comma(input)).map(Value::Crate)
}

/// Reads a value that must end where the next word may begin; the input stays where it was when it does not.
fn alone<T: Parse>(input: ParseStream<'_>) -> syn::Result<T> {
    let fork = input.fork();
    let value = fork.parse::<T>()?;
    if !ends(&fork) {
        return Err(fork.error("expected `,`"));
    }
    input.advance_to(&fork);
    Ok(value)
}

/// Whether a value may end here. Before another word it may: there only the comma was forgotten, which is said of it.
fn ends(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,]) || input.peek(Ident::peek_any)
}

/// Takes everything up to the next comma.
fn until_comma(input: ParseStream<'_>) -> TokenStream {
    let mut value = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        match input.parse::<TokenTree>() {
            Ok(token) => value.extend([token]),
            Err(_) => break,
        }
    }
    value
}

fn first(tokens: TokenStream) -> TokenStream {
    tokens.into_iter().take(1).collect()
}

fn words_help(place: Place) -> String {
    match place {
        Place::Enum => "an enum takes `default = permanent` (or another disposition) and `crate = ::path`".into(),
        Place::Field => format!("a field takes {}", one_of(&place.words())),
        Place::Struct | Place::Variant => format!(
            "{} takes one of `retryable`, `permanent`, `gone`, `unknown`, `transparent`, `status = field` or \
             `with = path`, and details such as `class = \"rate_limit\"` or `retry_after = field`",
            place.phrase()
        ),
    }
}
