//! What a server asks of its clients before they come again: `Retry-After` and its kin.
//!
//! Every parser takes text from outside, so none panics: a date in the past is a wait of zero, nonsense is no hint, and a
//! number too large is the longest [`Duration`] (which no policy obeys by waiting).
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use retry_runtime::{Verdict, hints};
//!
//! let headers = [("retry-after", "1.5"), ("content-type", "text/html")];
//! let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
//! let verdict = hints::from_headers(header, SystemTime::now()).apply(Verdict::retryable("rate_limit").code(429));
//! assert_eq!(verdict.retry_after, Some(Duration::from_millis(1500)));
//! ```

mod date;
mod retry_info;
mod rpc_status;

use std::time::{Duration, SystemTime};

use crate::verdict::{Disposition, Verdict};

pub use date::http_date;
pub use retry_info::{retry_info, retry_info_in};
pub use rpc_status::rpc_retry_info;

/// What a response's headers ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hints {
    /// How long to wait.
    pub retry_after: Option<Duration>,
    /// Whether to come again at all.
    pub should_retry: Option<bool>,
}

impl Hints {
    /// Adds the hints to a verdict. The wait is set where there is one. "Do not retry" makes a retryable or unknown failure
    /// permanent; "do retry" makes a permanent or unknown one retryable. Gone stays gone.
    #[must_use]
    pub const fn apply(self, mut verdict: Verdict) -> Verdict {
        if let Some(wait) = self.retry_after {
            verdict.retry_after = Some(wait);
        }
        match (self.should_retry, verdict.disposition) {
            (None, _) | (_, Disposition::Gone) => {}
            (Some(true), _) => verdict.disposition = Disposition::Retryable,
            (Some(false), _) => verdict.disposition = Disposition::Permanent,
        }
        verdict
    }
}

/// What a gRPC server pushes back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushback {
    /// Retry, after this wait.
    After(Duration),
    /// Do not retry.
    Stop,
}

/// Reads every header known here; `header` looks one up by its lower-case name.
///
/// The wait comes from the first of `grpc-retry-pushback-ms`, `retry-after-ms`, `x-ms-retry-after-ms` and `retry-after`
/// that makes sense. A pushback that says stop outweighs `x-should-retry`.
pub fn from_headers<'h>(header: impl Fn(&str) -> Option<&'h str>, now: SystemTime) -> Hints {
    let mut hints = Hints {
        retry_after: header("retry-after-ms")
            .and_then(retry_after_ms)
            .or_else(|| header("x-ms-retry-after-ms").and_then(retry_after_ms))
            .or_else(|| header("retry-after").and_then(|value| retry_after(value, now))),
        should_retry: header("x-should-retry").and_then(should_retry),
    };
    match header("grpc-retry-pushback-ms").and_then(grpc_pushback) {
        Some(Pushback::After(wait)) => hints.retry_after = Some(wait),
        Some(Pushback::Stop) => hints.should_retry = Some(false),
        None => {}
    }
    hints
}

/// [`from_headers`] of a header map.
#[cfg(feature = "http")]
pub fn from_header_map(headers: &http::HeaderMap, now: SystemTime) -> Hints {
    from_headers(|name| headers.get(name).and_then(|value| value.to_str().ok()), now)
}

/// `Retry-After`: seconds (`120`, and `1.5` as some servers write) or an HTTP date, whose distance from `now` counts.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    match seconds(value.trim()) {
        Some(wait) => Some(wait),
        None => http_date(value, now).map(|date| date.duration_since(now).unwrap_or_default()),
    }
}

/// `retry-after-ms`: milliseconds, whole or decimal.
pub fn retry_after_ms(value: &str) -> Option<Duration> {
    decimal(value.trim(), 1_000_000)
}

/// `google.protobuf.Duration` as JSON writes it, with its unit: `53s`, `0.5s`. A negative one is no hint.
pub fn proto_duration(value: &str) -> Option<Duration> {
    seconds(value.trim().strip_suffix('s')?)
}

/// `grpc-retry-pushback-ms`: whole milliseconds, or a negative number, which means stop.
pub fn grpc_pushback(value: &str) -> Option<Pushback> {
    let value = value.trim();
    let (digits, negative) = value.strip_prefix('-').map_or((value, false), |digits| (digits, true));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        None
    } else if negative {
        Some(Pushback::Stop)
    } else {
        retry_after_ms(digits).map(Pushback::After)
    }
}

/// `x-should-retry`: `true` or `false`, whatever the letter case.
pub fn should_retry(value: &str) -> Option<bool> {
    let value = value.trim();
    if value.eq_ignore_ascii_case("true") {
        Some(true)
    } else if value.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

fn seconds(value: &str) -> Option<Duration> {
    decimal(value, 1_000_000_000)
}

/// A decimal number without sign or exponent, in units of so many nanoseconds (a power of ten). Rounded up, since a wait
/// must not be shorter than what was asked; saturating.
fn decimal(value: &str, unit: u64) -> Option<Duration> {
    let (whole, fraction) = match value.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (value, ""),
    };
    if whole.is_empty() {
        return None;
    }
    let mut nanos = 0_u128;
    for byte in whole.bytes() {
        nanos = nanos.saturating_mul(10).saturating_add(digit(byte)?);
    }
    nanos = nanos.saturating_mul(u128::from(unit));
    let mut place = u128::from(unit);
    let mut beyond = false;
    for byte in fraction.bytes() {
        let digit = digit(byte)?;
        place /= 10;
        nanos = nanos.saturating_add(digit * place);
        beyond |= place == 0 && digit > 0;
    }
    Some(crate::nanos::from_nanos(nanos.saturating_add(u128::from(beyond))))
}

fn digit(byte: u8) -> Option<u128> {
    byte.is_ascii_digit().then(|| u128::from(byte - b'0'))
}
