//! The `# Retries` section that the attribute adds to documented functions.

use std::fmt::Write as _;
use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Attribute;

use super::model::{Backoff, Count, Jitter, Nested, Numbers, Options};
use crate::slot::Slot;
use crate::value::Known;

/// The waits of a longer schedule are not all listed.
const LISTED: u32 = 8;

/// The section; nothing where the function has no docs, since `missing_docs` is the user's to hear.
pub(crate) fn section<'a>(options: &Options, mut attrs: impl Iterator<Item = &'a Attribute>) -> TokenStream {
    if !attrs.any(|attr| attr.path().is_ident("doc")) {
        return TokenStream::new();
    }
    let text = text(options);
    let lines = ["", " # Retries", ""].into_iter().chain(text.lines()).map(ToOwned::to_owned);
    let lines: Vec<String> = lines.collect();
    quote!(#(#[doc = #lines])*)
}

fn text(options: &Options) -> String {
    let mut text = String::new();
    if let Some(policy) = options.policy.get() {
        let _ = write!(text, " Retries by the policy `{}`.", policy.to_token_stream());
    } else {
        let numbers = &options.numbers;
        let attempts = match numbers.max_retries.get() {
            None => "At most 3 attempts".to_owned(),
            Some(Count::Forever) => "Attempts without a limit in number".to_owned(),
            Some(Count::Limited(Known::Literal(0, _))) => "One attempt".to_owned(),
            Some(Count::Limited(Known::Literal(count, _))) => format!("At most {} attempts", u64::from(*count) + 1),
            Some(Count::Limited(Known::Computed(expr))) => {
                format!("At most `{}` attempts after the first", expr.to_token_stream())
            }
        };
        let own = options.classes.iter().any(|class| class.numbers.max_retries.is_set());
        let but = if own { ", but for the classes below" } else { "" };
        let _ = write!(text, " {attempts}{but}.{}", waits(numbers));
    }
    for class in &options.classes {
        let _ = write!(text, "\n {}", of_class(&class.name.value(), &class.numbers, options));
    }
    for (name, limit) in [("attempt_timeout", &options.attempt_timeout), ("deadline", &options.deadline)] {
        if let Some(limit) = limit.get() {
            let what = if name == "deadline" {
                "All attempts and waits together end within"
            } else {
                "Each attempt is limited to"
            };
            let _ = write!(text, "\n {what} {}.", shown(limit));
        }
    }
    if options.idempotent.get() == Some(&false) {
        text.push_str("\n A failure that may have done the work all the same is not repeated.");
    }
    if options.nested.get() == Some(&Nested::OuterOnly) {
        text.push_str("\n One attempt where it is called in an attempt of another retried call.");
    }
    if let Some(cancel) = options.cancel.get() {
        let _ = write!(text, "\n Ends at once when `{}` completes.", cancel.to_token_stream());
    }
    if options.budget.is_set() {
        text.push_str("\n No retry when the budget it shares with others is empty.");
    }
    if options.breaker.is_set() {
        text.push_str("\n No attempt while its circuit breaker is open.");
    }
    if options.fallback.is_set() {
        text.push_str("\n Then a fallback is tried once.");
    }
    if options.dead_letter.is_set() {
        text.push_str("\n A job that is given up is parked as a dead letter.");
    }
    text
}

/// What holds for one class: its own count, and its waits where they are its own.
fn of_class(name: &str, own: &Numbers, options: &Options) -> String {
    let count = match own.max_retries.get() {
        None => String::new(),
        Some(Count::Forever) => " is retried without a limit in number".to_owned(),
        Some(Count::Limited(Known::Literal(0, _))) => " is not retried".to_owned(),
        Some(Count::Limited(Known::Literal(1, _))) => " is retried at most once".to_owned(),
        Some(Count::Limited(Known::Literal(count, _))) => format!(" is retried at most {count} times"),
        Some(Count::Limited(Known::Computed(expr))) => {
            format!(" is retried at most `{}` times", expr.to_token_stream())
        }
    };
    let own_waits = own.keys().any(|key| key != "max_retries" && key != "max_retry_after");
    let waits = match (own_waits, options.policy.is_set()) {
        (false, _) => String::new(),
        (true, false) => waits(&own.over(&options.numbers)),
        (true, true) => " It has waits of its own.".to_owned(),
    };
    if count.is_empty() {
        format!("A failure of class `{name}`:{waits}")
    } else {
        format!("A failure of class `{name}`{count}.{waits}")
    }
}

fn shown(value: &Known<Duration>) -> String {
    match value {
        Known::Literal(duration, _) => format!("{duration:?}"),
        Known::Computed(expr) => format!("`{}`", expr.to_token_stream()),
    }
}

fn waits(numbers: &Numbers) -> String {
    let count = match numbers.max_retries.get() {
        None => 2,
        Some(Count::Limited(Known::Literal(count, _))) => *count,
        Some(Count::Limited(Known::Computed(_)) | Count::Forever) => return rule(numbers),
    };
    if count == 0 {
        return String::new();
    }
    match schedule(numbers, count.min(LISTED)) {
        Some(waits) => {
            let list: Vec<String> = waits.iter().map(|wait| format!("{wait:?}")).collect();
            let more = if count > LISTED { ", ..." } else { "" };
            let jitter = jitter(numbers);
            let total = if count <= LISTED {
                let total: Duration = waits.iter().sum();
                format!(" In the worst case the waits add up to {:?}.", total + added(numbers, count))
            } else {
                String::new()
            };
            format!(" Waits between them: {}{more}{jitter}.{total}", list.join(", "))
        }
        None => rule(numbers),
    }
}

/// The most that an added jitter can add over all waits; the other kinds only take away.
fn added(numbers: &Numbers, count: u32) -> Duration {
    match numbers.jitter.get() {
        Some(Jitter::Additive(Known::Literal(added, _))) => added.saturating_mul(count),
        _ => Duration::ZERO,
    }
}

fn jitter(numbers: &Numbers) -> String {
    match numbers.jitter.get() {
        None | Some(Jitter::None) => String::new(),
        Some(Jitter::Full) => ", each with full jitter".to_owned(),
        Some(Jitter::Equal) => ", each with equal jitter".to_owned(),
        Some(Jitter::Decorrelated) => ", with decorrelated jitter".to_owned(),
        Some(Jitter::Additive(added)) => format!(", each plus up to {}", shown(added)),
    }
}

fn rule(numbers: &Numbers) -> String {
    let base = numbers.base_delay.get().map_or_else(|| "1s".to_owned(), shown);
    let max = numbers.max_delay.get().map_or_else(|| "60s".to_owned(), shown);
    format!(" Waits between them start at {base} and are at most {max}{}.", jitter(numbers))
}

fn schedule(numbers: &Numbers, count: u32) -> Option<Vec<Duration>> {
    let literal = |slot: &Slot<Known<Duration>>, default| slot.get().map_or(Some(default), Known::literal);
    let base = literal(&numbers.base_delay, Duration::from_secs(1))?;
    let max = literal(&numbers.max_delay, Duration::from_secs(60))?;
    if matches!(numbers.jitter.get(), Some(Jitter::Decorrelated)) {
        return None;
    }
    let (mut before, mut now) = (0_u32, 1_u32);
    let mut waits = Vec::new();
    for n in 0..count {
        let wait = match numbers.backoff.get() {
            None | Some(Backoff::Exponential(None)) => base.saturating_mul(2_u32.saturating_pow(n)),
            Some(Backoff::Exponential(Some(factor))) => {
                let seconds = base.as_secs_f64() * factor.literal()?.powi(i32::try_from(n).ok()?);
                Duration::try_from_secs_f64(seconds).unwrap_or(max)
            }
            Some(Backoff::Fixed) => base,
            Some(Backoff::Linear) => base.saturating_mul(n + 1),
            Some(Backoff::Fibonacci) => {
                let wait = base.saturating_mul(now);
                (before, now) = (now, before + now);
                wait
            }
            Some(Backoff::Custom) => return None,
        };
        waits.push(wait.min(max));
    }
    Some(waits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Diag;
    use crate::retry::parse;

    #[test]
    fn each_class_has_its_line() {
        let diag = Diag::new();
        let classes = quote!(class(rate_limit, max_retries = 4, base_delay = "10s"), class(timeout, max_retries = 0));
        let options = parse::options(&diag, quote!(#classes, class(busy, jitter = full)));
        assert!(diag.finish().is_none());
        let lines = [
            " At most 3 attempts, but for the classes below. Waits between them: 1s, 2s. In the worst case the waits add up to 3s.",
            " A failure of class `rate_limit` is retried at most 4 times. Waits between them: 10s, 20s, 40s, 60s. In the worst case the waits add up to 130s.",
            " A failure of class `timeout` is not retried.",
            " A failure of class `busy`: Waits between them: 1s, 2s, each with full jitter. In the worst case the waits add up to 3s.",
        ];
        assert_eq!(text(&options), lines.join("\n"));
    }
}
