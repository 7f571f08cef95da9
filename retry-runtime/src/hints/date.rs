//! HTTP dates, in the three forms of RFC 9110 (5.6.7).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY: i64 = 86_400;
/// What RFC 9110 calls far in the future for a year of two digits.
const FIFTY_YEARS: i64 = 50 * 365 * DAY;

/// An HTTP date: `Sun, 06 Nov 1994 08:49:37 GMT`, or the obsolete `Sunday, 06-Nov-94 08:49:37 GMT` and
/// `Sun Nov  6 08:49:37 1994`. `None` for anything else, and for days that no calendar has.
///
/// `now` decides the century of a two-digit year: a date over 50 years ahead lies in the century before. The name of the
/// weekday is not compared with the date.
pub fn http_date(value: &str, now: SystemTime) -> Option<SystemTime> {
    // No form is longer; nothing from outside is walked without a bound.
    if value.len() > 64 {
        return None;
    }
    let mut words = value.split_ascii_whitespace();
    let weekday = words.next()?;
    let name = weekday.strip_suffix(',');
    is_name(name.unwrap_or(weekday))?;
    let seconds = if name.is_some() { comma_form(&mut words, now)? } else { asctime(&mut words)? };
    if words.next().is_some() {
        return None;
    }
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

/// `06 Nov 1994 08:49:37 GMT` or `06-Nov-94 08:49:37 GMT`.
fn comma_form<'v>(words: &mut impl Iterator<Item = &'v str>, now: SystemTime) -> Option<i64> {
    let date = words.next()?;
    let mut parts = date.split('-');
    let (day, month, year) = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(day), Some(month), Some(year), None) => (day, month, year),
        (Some(day), None, ..) => (day, words.next()?, words.next()?),
        _ => return None,
    };
    let (day, month, time) = (number(day, 1..=2)?, month_number(month)?, time_of_day(words.next()?)?);
    matches!(words.next()?, "GMT" | "UTC").then_some(())?;
    if year.len() != 2 {
        return seconds(number(year, 4..=4)?, month, day, time);
    }
    let now = now.duration_since(UNIX_EPOCH).ok().and_then(|now| i64::try_from(now.as_secs()).ok()).unwrap_or(0);
    let mut year = number(year, 2..=2)? + 2000;
    // Twice is enough for any `now` below the year 2150, and a day that only leap years have is tried in each century.
    for _ in 0..2 {
        match seconds(year, month, day, time) {
            Some(date) if date - now <= FIFTY_YEARS => return Some(date),
            _ => year -= 100,
        }
    }
    None
}

/// `Nov  6 08:49:37 1994`.
fn asctime<'v>(words: &mut impl Iterator<Item = &'v str>) -> Option<i64> {
    let month = month_number(words.next()?)?;
    let day = number(words.next()?, 1..=2)?;
    let time = time_of_day(words.next()?)?;
    seconds(number(words.next()?, 4..=4)?, month, day, time)
}

fn is_name(word: &str) -> Option<()> {
    (word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic())).then_some(())
}

/// From 1.
fn month_number(name: &str) -> Option<i64> {
    (1..).zip(MONTHS).find(|(_, month)| month.eq_ignore_ascii_case(name)).map(|(number, _)| number)
}

/// Seconds since midnight. A leap second counts as the one after it.
fn time_of_day(time: &str) -> Option<i64> {
    let mut parts = time.split(':');
    let (Some(hours), Some(minutes), Some(seconds), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let (hours, minutes, seconds) = (number(hours, 2..=2)?, number(minutes, 2..=2)?, number(seconds, 2..=2)?);
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
    (digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Seconds since 1970 of a day in the proleptic Gregorian calendar, plus the time of day. Years of four digits at most, so
/// nothing overflows.
fn seconds(year: i64, month: i64, day: i64, time: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last; 719,468 days lie between 0000-03-01 and 1970-01-01.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day;
    Some((days - 1 - 719_468) * DAY + time)
}
