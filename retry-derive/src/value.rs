//! Values of options: durations, counts, factors, words.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::parse::Parser;
use syn::{Expr, ExprGroup, ExprLit, ExprParen, ExprUnary, Lit, LitStr, Path, UnOp};

use crate::diag::Diag;

/// The accepted forms of a duration, for messages.
pub(crate) const DURATION_FORMS: &str = "a duration is a string such as \"250ms\", \"1.5s\", \"2m\" or \"1h30m\" (units ns, us, ms, s, m, h, d), or an expression of type `Duration`";

/// A setting that is known while compiling, or computed by each call.
#[derive(Clone)]
pub(crate) enum Known<T> {
    Literal(T, Span),
    Computed(Expr),
}

impl<T: Copy> Known<T> {
    pub(crate) fn literal(&self) -> Option<T> {
        match self {
            Self::Literal(value, _) => Some(*value),
            Self::Computed(_) => None,
        }
    }

    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Literal(_, span) => *span,
            Self::Computed(expr) => first_span(expr),
        }
    }
}

/// The first token's span.
pub(crate) fn first_span(tokens: &impl ToTokens) -> Span {
    tokens.to_token_stream().into_iter().next().map_or_else(Span::call_site, |token| token.span())
}

/// Without the invisible groups of macro fragments, and without parentheses.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(ExprGroup { expr, .. }) | Expr::Paren(ExprParen { expr, .. }) => bare(expr),
        other => other,
    }
}

/// The literal of an expression that is one.
pub(crate) fn literal(expr: &Expr) -> Option<&Lit> {
    match bare(expr) {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

/// Reads a duration; `None` after an error was reported.
pub(crate) fn duration(diag: &Diag, key: &str, expr: Expr) -> Option<Known<Duration>> {
    match literal(&expr) {
        Some(Lit::Str(text)) => match parse_duration(&text.value()) {
            Ok(duration) => Some(Known::Literal(duration, text.span())),
            Err(why) => {
                diag.error(text, format!("`{key}`: {why}")).help(DURATION_FORMS);
                None
            }
        },
        Some(number @ (Lit::Int(_) | Lit::Float(_))) => {
            let shown = number.to_token_stream().to_string();
            diag.error(&expr, format!("`{key}`: a duration needs a unit, `{shown}` has none"))
                .help(format!("write `{key} = \"{shown}s\"` or `{key} = \"{shown}ms\"`"));
            None
        }
        Some(_) => {
            diag.error(&expr, format!("`{key}` takes a duration")).help(DURATION_FORMS);
            None
        }
        None if is_negative(&expr) => {
            diag.error(&expr, format!("`{key}`: a duration cannot be negative")).help(DURATION_FORMS);
            None
        }
        None => Some(Known::Computed(expr)),
    }
}

/// Reads a count from 0 to `u32::MAX`.
pub(crate) fn count(diag: &Diag, key: &str, expr: Expr) -> Option<Known<u32>> {
    const RANGE: &str = "a whole number from 0 to 4294967295";
    match literal(&expr) {
        Some(Lit::Int(number)) if !matches!(number.suffix(), "" | "u32") => {
            diag.error(&expr, format!("`{key}` is a `u32`, not a `{}`", number.suffix()));
            None
        }
        Some(Lit::Int(number)) => match number.base10_digits().parse() {
            Ok(count) => Some(Known::Literal(count, number.span())),
            Err(_) => {
                diag.error(&expr, format!("`{key}`: {number} is out of range: it is {RANGE}"));
                None
            }
        },
        Some(_) => {
            diag.error(&expr, format!("`{key}` takes {RANGE}, or an expression of type `u32`"));
            None
        }
        None if is_negative(&expr) => {
            diag.error(&expr, format!("`{key}` cannot be negative: it is {RANGE}"));
            None
        }
        None => Some(Known::Computed(expr)),
    }
}

/// Reads a factor of growth.
pub(crate) fn factor(diag: &Diag, expr: Expr) -> Option<Known<f64>> {
    let parsed = match literal(&expr) {
        Some(Lit::Int(number)) if number.suffix().is_empty() => number.base10_digits().parse::<f64>().ok(),
        Some(Lit::Float(number)) if matches!(number.suffix(), "" | "f64") => number.base10_digits().parse::<f64>().ok(),
        Some(_) => None,
        None if is_negative(&expr) => None,
        None => return Some(Known::Computed(expr)),
    };
    match parsed {
        Some(factor) if factor >= 1.0 && factor.is_finite() => Some(Known::Literal(factor, first_span(&expr))),
        _ => {
            diag.error(&expr, "the factor of `exponential(..)` is a finite number of at least 1, such as `1.5`");
            None
        }
    }
}

fn is_negative(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => literal(expr).is_some(),
        _ => false,
    }
}

/// Reads a string literal.
pub(crate) fn string(diag: &Diag, key: &str, expr: &Expr) -> Option<LitStr> {
    match literal(expr) {
        Some(Lit::Str(text)) if text.value().trim().is_empty() => {
            diag.error(text, format!("`{key}` may not be empty"));
            None
        }
        Some(Lit::Str(text)) => Some(text.clone()),
        _ => {
            diag.error(expr, format!("`{key}` takes a string literal, such as `{key} = \"fetch_page\"`"));
            None
        }
    }
}

/// Reads the path of the runtime: absolute, so that it means the same wherever the generated code stands.
pub(crate) fn krate(diag: &Diag, tokens: TokenStream) -> Option<Path> {
    let shown = tokens.to_string().replace(' ', "");
    match Path::parse_mod_style.parse2(tokens.clone()) {
        Ok(path) => {
            let first = path.segments.first().map(|segment| segment.ident.to_string());
            if path.leading_colon.is_some() || matches!(first.as_deref(), Some("crate" | "$crate")) {
                return Some(path);
            }
            let inside = matches!(first.as_deref(), Some("self" | "super" | "Self"));
            diag.error(tokens, "`crate` expects an absolute path").help(if inside {
                "write the path from the root of your crate: `crate = crate::path::to::retry_runtime`".to_owned()
            } else {
                format!("write `crate = ::{shown}` for a crate of that name, or `crate = crate::{shown}` for a path in your own")
            });
        }
        Err(_) => {
            let reported = diag.error(&tokens, "`crate` expects an absolute path: `crate = ::retry_runtime`");
            if let Ok(text) = syn::parse2::<LitStr>(tokens) {
                let path = text.value();
                reported.help(format!("write it without quotes: `crate = ::{}`", path.trim_start_matches("::")));
            }
        }
    }
    None
}

/// A duration as a constant expression.
pub(crate) fn duration_tokens(duration: Duration, span: Span) -> TokenStream {
    let (secs, nanos) = (duration.as_secs(), duration.subsec_nanos());
    quote_spanned!(span=> ::core::time::Duration::new(#secs, #nanos))
}

/// Reads `"1h30m"` and the like: numbers, each with a unit, the last of each unit larger than the next.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("the duration is empty".to_owned());
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        if number.is_empty() {
            return Err(if rest.starts_with('-') {
                "a duration cannot be negative".to_owned()
            } else {
                format!("`{text}` is not a duration: a number is expected before `{rest}`")
            });
        }
        let after = after.trim_start();
        let letters =
            after.find(|c: char| c.is_ascii_digit() || c == '.' || c == ' ' || c == '-').unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let nanos = unit_nanos(unit).ok_or_else(|| {
            if unit.is_empty() {
                format!("a duration needs a unit, `{text}` has none: write \"{text}ms\" or \"{text}s\"")
            } else {
                format!("`{unit}` is not a unit of time: the units are ns, us, ms, s, m, h and d")
            }
        })?;
        if number.matches('.').count() > 1 || !number.contains(|c: char| c.is_ascii_digit()) {
            return Err(format!("`{number}` is not a number"));
        }
        let part = scaled(number, nanos).ok_or_else(|| format!("the duration `{text}` is too large"))?;
        total = total.checked_add(part).ok_or_else(|| format!("the duration `{text}` is too large"))?;
        rest = after.trim_start();
    }
    let secs = u64::try_from(total / 1_000_000_000).map_err(|_| format!("the duration `{text}` is too large"))?;
    let nanos = u32::try_from(total % 1_000_000_000).unwrap_or_default();
    Ok(Duration::new(secs, nanos))
}

fn unit_nanos(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    })
}

/// `number * unit` in whole nanoseconds, digits beyond them dropped.
fn scaled(number: &str, unit: u128) -> Option<u128> {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(unit)?;
    let mut scale = unit;
    for digit in fraction.chars() {
        scale /= 10;
        total = total.checked_add(u128::from(digit.to_digit(10)?) * scale)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_and_mixed_forms() {
        let cases = [
            ("1ns", Duration::from_nanos(1)),
            ("7us", Duration::from_micros(7)),
            ("250ms", Duration::from_millis(250)),
            ("1.5s", Duration::from_millis(1500)),
            ("2m", Duration::from_secs(120)),
            ("1h30m", Duration::from_secs(5400)),
            ("1h 30m", Duration::from_secs(5400)),
            ("1d", Duration::from_secs(86400)),
            ("0s", Duration::ZERO),
            ("0.000000001s", Duration::from_nanos(1)),
            ("1_000ms", Duration::from_secs(1)),
        ];
        for (text, duration) in cases {
            assert_eq!(parse_duration(text), Ok(duration), "{text}");
        }
    }

    #[test]
    fn bad_ones_say_what_is_wrong() {
        let cases = [
            ("", "empty"),
            ("  ", "empty"),
            ("5", "unit"),
            ("s", "number"),
            ("5 parsecs", "not a unit"),
            ("5sec", "not a unit"),
            ("-1s", "negative"),
            ("1..5s", "not a number"),
            (".s", "not a number"),
            ("99999999999999999999h", "too large"),
            ("99999999999999999999999999999999999999999h", "too large"),
        ];
        for (text, word) in cases {
            let error = parse_duration(text).expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
