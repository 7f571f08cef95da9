//! Values as they are written, in the forms of the attribute.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::jitter::Jitter;
use crate::policy::Retries;

use super::near::hint;

/// A value before it is understood.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written<'a> {
    /// A text in a file.
    Text(&'a str),
    /// A whole number in a file; `None` where it is beyond 128 bits.
    Integer(Option<i128>),
    /// The value of a variable: a text that may be a number.
    Bare(&'a str),
    /// Something else in a file, by the name of its kind.
    Other(&'static str),
}

pub(super) const COUNT_FORMS: &str = "a whole number from 0 to 4294967295, or \"forever\"";
pub(super) const DURATION_FORMS: &str =
    "a duration such as \"250ms\", \"1.5s\", \"2m\" or \"1h30m\" (units ns, us, ms, s, m, h, d)";
pub(super) const BACKOFF_FORMS: &str = "\"exponential\", \"exponential(1.5)\", \"fixed\", \"linear\" or \"fibonacci\"";
pub(super) const JITTER_FORMS: &str =
    "\"none\", \"full\", \"equal\", \"decorrelated\", or a duration to add, such as \"250ms\"";

pub(super) fn count(written: Written<'_>) -> Result<Retries, String> {
    let accepted = || format!("the value is {COUNT_FORMS}");
    match written {
        Written::Text("forever") | Written::Bare("forever") => Ok(Retries::Forever),
        Written::Integer(Some(number)) => u32::try_from(number).map(Retries::Limited).map_err(|_| accepted()),
        Written::Bare(text) => match text.parse() {
            // the parser of numbers takes a sign, and nobody else does
            Ok(number) if !text.starts_with('+') => Ok(Retries::Limited(number)),
            _ => Err(accepted()),
        },
        Written::Text(text) if text.parse::<u32>().is_ok() => Err(format!("write it without quotes; {}", accepted())),
        Written::Text(_) | Written::Integer(None) | Written::Other(_) => Err(accepted()),
    }
}

pub(super) fn duration(written: Written<'_>) -> Result<Duration, String> {
    let why = match written {
        Written::Text(text) | Written::Bare(text) => match parse_duration(text) {
            Ok(duration) => return Ok(duration),
            Err(why) => why,
        },
        Written::Integer(_) => "a duration needs a unit".to_owned(),
        Written::Other(kind) => format!("{kind} is no duration"),
    };
    Err(format!("{why}; the value is {DURATION_FORMS}"))
}

pub(super) fn backoff(written: Written<'_>) -> Result<Backoff, String> {
    let refused = |why: &str| format!("{why}; the value is {BACKOFF_FORMS}");
    let text = match written {
        Written::Text(text) | Written::Bare(text) => text.trim(),
        Written::Integer(_) => return Err(refused("a number is no backoff")),
        Written::Other(kind) => return Err(refused(&format!("{kind} is no backoff"))),
    };
    match text {
        "exponential" => return Ok(Backoff::Exponential(2.0)),
        "fixed" => return Ok(Backoff::Fixed),
        "linear" => return Ok(Backoff::Linear),
        "fibonacci" => return Ok(Backoff::Fibonacci),
        _ => {}
    }
    if let Some(factor) = text.strip_prefix("exponential(").and_then(|rest| rest.strip_suffix(')')) {
        let factor = factor.trim();
        let number = factor.parse::<f64>().ok().filter(|_| factor.starts_with(|c: char| c.is_ascii_digit()));
        return match number {
            Some(number) if number.is_finite() && number >= 1.0 => Ok(Backoff::Exponential(number)),
            _ => Err(refused("the factor of `exponential(..)` is a finite number of at least 1")),
        };
    }
    Err(refused(&format!("no such backoff{}", hint(text, &["exponential", "fixed", "linear", "fibonacci"]))))
}

pub(super) fn jitter(written: Written<'_>) -> Result<Jitter, String> {
    let refused = |why: &str| format!("{why}; the value is {JITTER_FORMS}");
    let text = match written {
        Written::Text(text) | Written::Bare(text) => text.trim(),
        Written::Integer(_) => return Err(refused("a duration needs a unit")),
        Written::Other(kind) => return Err(refused(&format!("{kind} is no jitter"))),
    };
    match text {
        "none" => Ok(Jitter::None),
        "full" => Ok(Jitter::Full),
        "equal" => Ok(Jitter::Equal),
        "decorrelated" => Ok(Jitter::Decorrelated),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') => {
            parse_duration(text).map(Jitter::Additive).map_err(|why| refused(&why))
        }
        _ => Err(refused(&format!("no such jitter{}", hint(text, &["none", "full", "equal", "decorrelated"])))),
    }
}

/// Reads `"1h30m"` and the like as the attribute does: numbers, each with its unit.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("the duration is empty".to_owned());
    }
    let too_large = || "the duration is too large".to_owned();
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        if number.is_empty() {
            return Err(if rest.starts_with('-') {
                "a duration cannot be negative".to_owned()
            } else {
                format!("a number is expected before `{rest}`")
            });
        }
        let after = after.trim_start();
        let letters =
            after.find(|c: char| c.is_ascii_digit() || c == '.' || c == ' ' || c == '-').unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let nanos = unit_nanos(unit).ok_or_else(|| match unit {
            "" => format!("a duration needs a unit, `{number}` has none"),
            _ => format!("`{unit}` is not a unit of time"),
        })?;
        let part = scaled(number, nanos).ok_or_else(|| format!("`{number}` is not a number, or too large"))?;
        total = total.checked_add(part).ok_or_else(too_large)?;
        rest = after.trim_start();
    }
    let secs = u64::try_from(total / 1_000_000_000).map_err(|_| too_large())?;
    Ok(Duration::new(secs, u32::try_from(total % 1_000_000_000).unwrap_or_default()))
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
#[allow(clippy::unwrap_used)] // tests fail by panicking
mod tests {
    use super::*;

    // 14.1: every form that is accepted
    #[test]
    fn every_form() {
        let text = Written::Text;
        assert_eq!(count(Written::Integer(Some(0))), Ok(Retries::Limited(0)));
        assert_eq!(count(Written::Integer(Some(4_294_967_295))), Ok(Retries::Limited(u32::MAX)));
        assert_eq!(count(Written::Bare("6")), Ok(Retries::Limited(6)));
        assert_eq!(count(text("forever")), Ok(Retries::Forever));
        assert_eq!(duration(text("1h 30m")), Ok(Duration::from_secs(5400)));
        assert_eq!(duration(Written::Bare("1.5s")), Ok(Duration::from_millis(1500)));
        assert_eq!(duration(text("1_000ms")), Ok(Duration::from_secs(1)));
        assert_eq!(backoff(text("exponential")), Ok(Backoff::Exponential(2.0)));
        assert_eq!(backoff(text("exponential(1.5)")), Ok(Backoff::Exponential(1.5)));
        assert_eq!(backoff(text("exponential( 1 )")), Ok(Backoff::Exponential(1.0)));
        assert_eq!(backoff(Written::Bare("fibonacci")), Ok(Backoff::Fibonacci));
        assert_eq!((backoff(text("fixed")), backoff(text("linear"))), (Ok(Backoff::Fixed), Ok(Backoff::Linear)));
        assert_eq!(jitter(text("decorrelated")), Ok(Jitter::Decorrelated));
        assert_eq!(jitter(text("250ms")), Ok(Jitter::Additive(Duration::from_millis(250))));
        assert_eq!((jitter(text("none")), jitter(text("full"))), (Ok(Jitter::None), Ok(Jitter::Full)));
    }

    // 14.1: what cannot be read says why, and what could be
    #[test]
    fn every_refusal_says_what_is_accepted() {
        let (text, bare, other) = (Written::Text, Written::Bare, Written::Other);
        for (written, why) in [
            (Written::Integer(Some(-1)), ""),
            (Written::Integer(Some(4_294_967_296)), ""),
            (Written::Integer(None), ""),
            (text("4"), "without quotes"),
            (text("four"), ""),
            (bare("+4"), ""),
            (bare(""), ""),
            (bare("4.5"), ""),
            (other("a boolean"), ""),
        ] {
            let said = count(written).unwrap_err();
            assert!(said.contains(COUNT_FORMS) && said.contains(why), "{written:?}: {said}");
        }
        for (written, why) in [
            (Written::Integer(Some(5)), "needs a unit"),
            (text("5"), "`5` has none"),
            (text(""), "empty"),
            (text("s"), "a number is expected before `s`"),
            (text("5sec"), "`sec` is not a unit"),
            (text("-1s"), "negative"),
            (bare("1..5s"), "not a number"),
            (text("99999999999999999999h"), "too large"),
            (other("an array"), "an array is no duration"),
        ] {
            let said = duration(written).unwrap_err();
            assert!(said.contains(DURATION_FORMS) && said.contains(why), "{written:?}: {said}");
        }
        for (written, why) in [
            (text("exponentail"), "did you mean `exponential`?"),
            (text("exponential(0.5)"), "at least 1"),
            (text("exponential(inf)"), "finite"),
            (text("exponential(1.5"), "no such backoff"),
            (bare(""), "no such backoff"),
            (Written::Integer(Some(2)), "a number is no backoff"),
            (other("a table"), "a table is no backoff"),
        ] {
            let said = backoff(written).unwrap_err();
            assert!(said.contains(BACKOFF_FORMS) && said.contains(why), "{written:?}: {said}");
        }
        for (written, why) in [
            (text("ful"), "did you mean `full`?"),
            (text("1parsec"), "`parsec` is not a unit"),
            (text("-1s"), "negative"),
            (bare(""), "no such jitter"),
            (Written::Integer(Some(1)), "needs a unit"),
            (other("a boolean"), "a boolean is no jitter"),
        ] {
            let said = jitter(written).unwrap_err();
            assert!(said.contains(JITTER_FORMS) && said.contains(why), "{written:?}: {said}");
        }
    }
}
