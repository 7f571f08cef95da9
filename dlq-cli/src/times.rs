//! Times and durations as people type and read them. All times are UTC.

use std::time::{Duration, SystemTime};

use retry_runtime::counters::Day;

/// Units of durations, the longest first, in seconds.
const UNITS: [(&str, u64); 5] = [("w", 7 * 86_400), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];

/// A duration: `90s`, `15m`, `1h30m`, `2d`, `1w`; `ms` too.
///
/// # Errors
/// What is accepted.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration: accepted are 90s, 15m, 1h30m, 2d, 1w");
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, behind) = rest.split_at_checked(digits).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let part = if let Some(left) = behind.strip_prefix("ms") {
            rest = left;
            Duration::from_millis(number)
        } else {
            let (unit, seconds) = UNITS.into_iter().find(|(unit, _)| behind.starts_with(unit)).ok_or_else(wrong)?;
            rest = behind.get(unit.len()..).unwrap_or_default();
            Duration::from_secs(number.checked_mul(seconds).ok_or_else(wrong)?)
        };
        total = total.checked_add(part).ok_or_else(wrong)?;
    }
    Ok(total)
}

/// A moment: how long ago (`2h`), a day (`2026-11-30`), or a time of it (`2026-11-30T14:20`, with seconds and `Z` if wanted).
///
/// # Errors
/// What is accepted.
pub fn moment(text: &str, now: SystemTime) -> Result<SystemTime, String> {
    let text = text.trim();
    if let Ok(ago) = duration(text) {
        return Ok(now.checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH));
    }
    date_time(text).ok_or_else(|| {
        format!("`{text}` is no time: accepted are how long ago (90s, 15m, 2h, 3d), a day (2026-11-30), or a time in UTC (2026-11-30T14:20:05Z)")
    })
}

fn date_time(text: &str) -> Option<SystemTime> {
    let day = Day::parse(text.get(..10)?)?.start();
    let rest = text.get(10..)?;
    if rest.is_empty() {
        return Some(day);
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let rest = rest.strip_suffix(['Z', 'z']).unwrap_or(rest);
    let mut parts = rest.split(':');
    let mut number = |most: u64| {
        let part = parts.next()?;
        let whole = part.split('.').next()?;
        (whole.len() == 2).then(|| whole.parse::<u64>().ok()).flatten().filter(|n| *n < most)
    };
    let (hour, minute) = (number(24)?, number(60)?);
    let second = if rest.len() > 5 { number(60)? } else { 0 };
    let millis = rest.split_once('.').map_or(Some(0), |(_, part)| fraction(part))?;
    day.checked_add(Duration::from_secs(hour * 3_600 + minute * 60 + second) + Duration::from_millis(millis))
}

/// Milliseconds, of what stands behind the point.
fn fraction(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.chars().chain("00".chars()).take(3).collect::<String>().parse().ok()
}

/// A moment in full: `2026-11-30T14:20:05Z`.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
///
/// assert_eq!(dlq_cli::times::full(UNIX_EPOCH + Duration::from_secs(1_767_323_045)), "2026-01-02T03:04:05Z");
/// ```
pub fn full(at: SystemTime) -> String {
    let day = Day::of(at);
    let second = at.duration_since(day.start()).map_or(0, |since| since.as_secs() % 86_400);
    format!("{day}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

/// A moment to the millisecond, as filters have it: as [`full`], with the fraction where there is one.
pub fn exact(at: SystemTime) -> String {
    let millis = at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_millis());
    let full = full(at);
    if millis == 0 { full } else { full.replace('Z', &format!(".{millis:03}Z")) }
}

/// A duration in its two largest units: `3 d 4 h`, `12 min`, `7 s`.
pub fn rough(span: Duration) -> String {
    let seconds = span.as_secs();
    let two = |large: u64, of: &str, small: u64, rest: &str| {
        if small == 0 { format!("{large} {of}") } else { format!("{large} {of} {small} {rest}") }
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => two(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => two(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

/// How long ago, or how far ahead: `12 min ago`, `in 3 h`.
pub fn ago(at: SystemTime, now: SystemTime) -> String {
    match now.duration_since(at) {
        Ok(since) => format!("{} ago", rough(since)),
        Err(ahead) => format!("in {}", rough(ahead.duration())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests fail by panicking
    use super::*;

    #[test]
    fn durations_are_read_and_said() {
        for (text, seconds) in
            [("90s", 90), ("15m", 900), ("1h30m", 5_400), ("2d", 172_800), (" 1w ", 604_800), ("0s", 0)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "5", "s", "-1s", "1.5h", "1x", "99999999999999999999s", "18446744073709551615w", "ü"] {
            assert!(duration(text).is_err(), "{text}");
        }
        let said = [0, 59, 60, 3_599, 3_600, 5_400, 86_400, 100_000].map(|s| rough(Duration::from_secs(s)));
        assert_eq!(said, ["0 s", "59 s", "1 min", "59 min", "1 h", "1 h 30 min", "1 d", "1 d 3 h"]);
    }

    #[test]
    fn moments_are_read_and_said() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        assert_eq!(moment("45s", now).unwrap(), now - Duration::from_secs(45));
        for text in ["2026-01-02T03:04:05Z", "2026-01-02 03:04:05", "2026-01-02t03:04:05.123z"] {
            assert_eq!(full(moment(text, now).unwrap()), "2026-01-02T03:04:05Z", "{text}");
        }
        let exactly =
            ["2026-01-02T03:04:05.123Z", "2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.1239", "2026-01-02T03:04:05Z"]
                .map(|text| exact(moment(text, now).unwrap()));
        let millis = [
            "2026-01-02T03:04:05.123Z",
            "2026-01-02T03:04:05.100Z",
            "2026-01-02T03:04:05.123Z",
            "2026-01-02T03:04:05Z",
        ];
        assert_eq!(exactly, millis);
        assert_eq!(full(moment("2026-01-02", now).unwrap()), "2026-01-02T00:00:00Z");
        assert_eq!(full(moment("2026-01-02T14:20", now).unwrap()), "2026-01-02T14:20:00Z");
        for text in [
            "yesterday",
            "2026-02-30",
            "2026-01-02T25:00",
            "2026-01-02T1:00",
            "2026-01-02T03:04:05.x",
            "2026-01-02T03:04:05+01:00",
            "ü",
        ] {
            assert!(moment(text, now).unwrap_err().contains("accepted are"), "{text}");
        }
        assert_eq!(
            (ago(now, now + Duration::from_secs(120)), ago(now + Duration::from_secs(3_600), now)),
            ("2 min ago".into(), "in 1 h".into())
        );
    }
}
