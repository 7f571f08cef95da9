//! Options whose value is one of a few words.

use syn::parse::ParseStream;
use syn::{Expr, Lit};

use super::{report, single_ident};
use crate::diag::Diag;
use crate::retry::model::{Nested, Unknown};
use crate::value;

/// `unknown = stop`
pub(super) fn unknown(diag: &Diag, input: ParseStream<'_>) -> Option<Unknown> {
    let (expr, word) = word(diag, "unknown", &["stop", "retry"], input)?;
    match word.as_str() {
        "stop" => Some(Unknown::Stop),
        "retry" => Some(Unknown::Retry),
        _ => {
            diag.error(&expr, "`unknown` is `stop` or `retry`");
            None
        }
    }
}

/// `idempotent = false`
pub(super) fn idempotent(diag: &Diag, input: ParseStream<'_>) -> Option<bool> {
    let (expr, _) = word(diag, "idempotent", &["true", "false"], input)?;
    if let Some(Lit::Bool(word)) = value::literal(&expr) {
        return Some(word.value);
    }
    diag.error(&expr, "`idempotent` is `true` or `false`")
        .help("`false`: a failure that may have done the work all the same is not repeated");
    None
}

/// `nested = detect`
pub(super) fn nested(diag: &Diag, input: ParseStream<'_>) -> Option<Nested> {
    let (expr, word) = word(diag, "nested", &["detect", "outer_only"], input)?;
    match word.as_str() {
        "detect" => Some(Nested::Detect),
        "outer_only" => Some(Nested::OuterOnly),
        _ => {
            diag.error(&expr, "`nested` is `detect` or `outer_only`")
                .help("`outer_only`: inside an attempt of another retried call this one makes a single attempt");
            None
        }
    }
}

/// The value, and the word that it is: empty where it is none.
fn word(diag: &Diag, key: &str, words: &[&str], input: ParseStream<'_>) -> Option<(Expr, String)> {
    let expr = report(diag, input.parse::<Expr>())?;
    if in_quotes(diag, key, words, &expr) {
        return None;
    }
    let word = single_ident(&expr).map(|word| word.to_string()).unwrap_or_default();
    Some((expr, word))
}

/// A word that was written as a string.
pub(super) fn in_quotes(diag: &Diag, key: &str, words: &[&str], expr: &Expr) -> bool {
    let Some(Lit::Str(text)) = value::literal(expr) else { return false };
    let text = text.value();
    let quoted = words.contains(&text.as_str());
    if quoted {
        diag.error(expr, format!("`{key}` is written without quotes: `{key} = {text}`"));
    }
    quoted
}
