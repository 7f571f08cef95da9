//! Reading the options. Mistakes are reported and skipped over, so that all of them come out at once.

mod groups;
mod item;
mod values;
mod words;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, Token, parenthesized};

pub(crate) use self::item::{Inline, Item, item};
use super::model::{Binding, Options};
use super::table::{self, Form};
use crate::diag::Diag;
use crate::names::nearest;
use crate::value::{self, Known};

/// Reads everything between the attribute's parentheses.
pub(crate) fn options(diag: &Diag, tokens: TokenStream) -> Options {
    let parser = |input: ParseStream<'_>| {
        let mut options = Options::default();
        while !input.is_empty() {
            if option(diag, &mut options, input).is_none() {
                skip_to_comma(input)?;
            } else if !input.is_empty() && !input.peek(Token![,]) {
                let rest: TokenTree = input.fork().parse()?;
                diag.error(&rest, "a comma is expected between two options");
                skip_to_comma(input)?;
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    };
    parser.parse2(tokens).unwrap_or_else(|error| {
        diag.syn_error(error);
        Options::default()
    })
}

/// Reads one option; `None` when the rest of it is to be skipped.
fn option(diag: &Diag, options: &mut Options, input: ParseStream<'_>) -> Option<()> {
    if !input.peek(Ident::peek_any) {
        return positional(diag, input);
    }
    let key = report(diag, input.call(Ident::parse_any))?;
    let name = key.to_string();
    let Some(known) = table::key(&name) else {
        unknown_option(diag, &key);
        return None;
    };
    match known.form {
        Form::Value => {
            if !input.peek(Token![=]) || input.peek(Token![==]) {
                let text = if input.peek(Token![:]) { "is followed by `=`" } else { "needs a value" };
                diag.error(&key, format!("`{name}` {text}: `{}`", known.example));
                return None;
            }
            report(diag, input.parse::<Token![=]>())?;
            if input.is_empty() || input.peek(Token![,]) {
                diag.error(&key, format!("`{name} =` has no value: `{}`", known.example));
                return None;
            }
            values::set(diag, options, &key, input)
        }
        Form::List => {
            if !input.peek(syn::token::Paren) {
                diag.error(&key, format!("`{name}` is written with parentheses: `{}`", known.example));
                return None;
            }
            set_list(diag, options, &key, known.example, input)
        }
    }
}

/// Something that is no `key = value`.
fn positional(diag: &Diag, input: ParseStream<'_>) -> Option<()> {
    const FORM: &str = "options are written `key = value` or `key(..)`";
    let tokens = until_comma(&input.fork());
    if tokens.is_empty() {
        let comma: TokenTree = report(diag, input.fork().parse())?;
        diag.error(comma, "an option is expected before this comma");
        return None;
    }
    let expr = syn::parse2::<Expr>(tokens.clone()).ok();
    let hint = match expr.as_ref().and_then(value::literal) {
        Some(syn::Lit::Int(number)) => format!("for a number of retries write `max_retries = {number}`"),
        Some(syn::Lit::Str(text)) => format!("for a delay write `base_delay = {}`", text.token()),
        _ => "for example `max_retries = 2, base_delay = \"1s\"`".to_owned(),
    };
    diag.error(tokens, FORM).help(hint);
    None
}

fn unknown_option(diag: &Diag, key: &Ident) {
    let name = key.to_string();
    let names = table::names();
    if let Some((_, ours)) = table::SYNONYMS.iter().find(|(word, _)| *word == name) {
        diag.error(key, format!("unknown option `{name}`; {ours}"));
        return;
    }
    match nearest(&name, &names) {
        Some(near) => {
            diag.error(key, format!("unknown option `{name}`; did you mean `{near}`?"));
        }
        None => {
            diag.error(key, format!("unknown option `{name}`")).help(format!("the options are {}", names.join(", ")));
        }
    }
}

fn set_list(diag: &Diag, options: &mut Options, key: &Ident, example: &str, input: ParseStream<'_>) -> Option<()> {
    let parse = || {
        let content;
        parenthesized!(content in input);
        content.parse::<TokenStream>()
    };
    let content = report(diag, parse())?;
    if content.is_empty() {
        diag.error(key, format!("`{key}(..)` is empty: `{example}`"));
        return Some(());
    }
    match key.to_string().as_str() {
        "retry_on" => options.retry_on.set(diag, key, report_at(diag, key, groups::cases.parse2(content))?),
        "stop_on" => options.stop_on.set(diag, key, report_at(diag, key, groups::cases.parse2(content))?),
        "retry_ok" => options.retry_ok.set(diag, key, report_at(diag, key, groups::cases.parse2(content))?),
        "clone" => options.clone.set(diag, key, groups::arguments(diag, key, content)?),
        "share" => options.share.set(diag, key, groups::arguments(diag, key, content)?),
        "class" => {
            let class = groups::class(diag, options, key, content)?;
            options.classes.push(class);
        }
        "ledger" => {
            let ledger = groups::ledger(diag, options, key, content);
            options.ledger.set(diag, key, ledger);
        }
        _ => {
            let letter = groups::dead_letter(diag, options, key, content);
            options.dead_letter.set(diag, key, letter);
        }
    }
    Some(())
}

/// Remembers an expression that each call computes.
fn bind_known<T>(bindings: &mut Vec<Binding>, class: Option<usize>, name: &'static str, value: &Known<T>) {
    if let Known::Computed(expr) = value {
        bindings.push(Binding { name, class, expr: expr.clone() });
    }
}

/// The identifier of an expression that is nothing but one.
pub(crate) fn single_ident(expr: &Expr) -> Option<Ident> {
    match value::bare(expr) {
        Expr::Path(path) if path.qself.is_none() && path.attrs.is_empty() => path.path.get_ident().cloned(),
        _ => None,
    }
}

/// The same; what is missing at the end of the input has no place but the key's.
fn report_at<T>(diag: &Diag, key: &Ident, result: syn::Result<T>) -> Option<T> {
    const END: &str = "unexpected end of input, ";
    match result {
        Err(error) if error.to_string().starts_with(END) => {
            diag.error(key, format!("`{key}`: {} at the end", error.to_string().trim_start_matches(END)));
            None
        }
        result => report(diag, result),
    }
}

/// Reports an error and goes on without the value.
fn report<T>(diag: &Diag, result: syn::Result<T>) -> Option<T> {
    result.map_err(|error| diag.syn_error(error)).ok()
}

fn until_comma(input: ParseStream<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        match input.parse::<TokenTree>() {
            Ok(tree) => tree.to_tokens(&mut tokens),
            Err(_) => break,
        }
    }
    tokens
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}
