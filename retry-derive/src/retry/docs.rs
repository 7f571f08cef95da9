//! The `# Retries` section that the attribute adds to documented functions.

use std::fmt::Write as _;
use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Attribute;

use super::model::{Backoff, Count, Jitter, Options};
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
        let attempts = match options.max_retries.get() {
            None => "At most 3 attempts".to_owned(),
            Some(Count::Forever) => "Attempts without a limit in number".to_owned(),
            Some(Count::Limited(Known::Literal(0, _))) => "One attempt".to_owned(),
            Some(Count::Limited(Known::Literal(count, _))) => format!("At most {} attempts", u64::from(*count) + 1),
            Some(Count::Limited(Known::Computed(expr))) => {
                format!("At most `{}` attempts after the first", expr.to_token_stream())
            }
        };
        let _ = write!(text, " {attempts}.{}", waits(options));
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
    if options.fallback.is_set() {
        text.push_str("\n Then a fallback is tried once.");
    }
    if options.dead_letter.is_set() {
        text.push_str("\n A job that is given up is parked as a dead letter.");
    }
    text
}

fn shown(value: &Known<Duration>) -> String {
    match value {
        Known::Literal(duration, _) => format!("{duration:?}"),
        Known::Computed(expr) => format!("`{}`", expr.to_token_stream()),
    }
}

fn waits(options: &Options) -> String {
    let count = match options.max_retries.get() {
        None => 2,
        Some(Count::Limited(Known::Literal(count, _))) => *count,
        Some(Count::Limited(Known::Computed(_)) | Count::Forever) => return rule(options),
    };
    if count == 0 {
        return String::new();
    }
    match schedule(options, count.min(LISTED)) {
        Some(waits) => {
            let list: Vec<String> = waits.iter().map(|wait| format!("{wait:?}")).collect();
            let more = if count > LISTED { ", ..." } else { "" };
            let jitter = jitter(options);
            let total = if count <= LISTED {
                let total: Duration = waits.iter().sum();
                format!(" In the worst case the waits add up to {:?}.", total + added(options, count))
            } else {
                String::new()
            };
            format!(" Waits between them: {}{more}{jitter}.{total}", list.join(", "))
        }
        None => rule(options),
    }
}

/// The most that an added jitter can add over all waits; the other kinds only take away.
fn added(options: &Options, count: u32) -> Duration {
    match options.jitter.get() {
        Some(Jitter::Additive(Known::Literal(added, _))) => added.saturating_mul(count),
        _ => Duration::ZERO,
    }
}

fn jitter(options: &Options) -> String {
    match options.jitter.get() {
        None | Some(Jitter::None) => String::new(),
        Some(Jitter::Full) => ", each with full jitter".to_owned(),
        Some(Jitter::Equal) => ", each with equal jitter".to_owned(),
        Some(Jitter::Decorrelated) => ", with decorrelated jitter".to_owned(),
        Some(Jitter::Additive(added)) => format!(", each plus up to {}", shown(added)),
    }
}

fn rule(options: &Options) -> String {
    let base = options.base_delay.get().map_or_else(|| "1s".to_owned(), shown);
    let max = options.max_delay.get().map_or_else(|| "60s".to_owned(), shown);
    format!(" Waits between them start at {base} and are at most {max}{}.", jitter(options))
}

fn schedule(options: &Options, count: u32) -> Option<Vec<Duration>> {
    let literal = |slot: &Slot<Known<Duration>>, default| slot.get().map_or(Some(default), Known::literal);
    let base = literal(&options.base_delay, Duration::from_secs(1))?;
    let max = literal(&options.max_delay, Duration::from_secs(60))?;
    if matches!(options.jitter.get(), Some(Jitter::Decorrelated)) {
        return None;
    }
    let (mut before, mut now) = (0_u32, 1_u32);
    let mut waits = Vec::new();
    for n in 0..count {
        let wait = match options.backoff.get() {
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
