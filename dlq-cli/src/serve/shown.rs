//! Hostile text, made fit for people: what would hide, turn around or steer is spelled out. (Markup is the templates'
//! business: they escape everything.)

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use retry_runtime::counters::Day;

/// A text as it may stand in a page: at most about `most` bytes, cut in the middle and marked.
pub(super) fn text(text: &str, most: usize) -> String {
    let cut = retry_runtime::attempt::cut_middle(text, most);
    let mut out = String::with_capacity(cut.len());
    for c in cut.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {}
            c if is_spelled_out(c) => {
                // Writing to a text does not fail.
                let _written = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// The same in one line.
pub(super) fn line(line: &str, most: usize) -> String {
    text(line, most).replace(['\n', '\t'], " ")
}

/// Controls, marks that change the direction of writing, what takes no room, and what belongs to nobody.
pub(super) fn is_spelled_out(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B | 0x200E | 0x200F | 0x2028..=0x202E | 0x2060..=0x206F
            | 0x3164 | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0xE000..=0xF8FF | 0xE0000..=0xE0FFF | 0xF0000..=0x10_FFFF)
}

/// `2026-11-30 23:59:59 UTC`.
pub(super) fn moment(at: SystemTime) -> String {
    let day = Day::of(at);
    let second = at.duration_since(day.start()).map_or(0, |since| since.as_secs() % 86_400);
    format!("{day} {:02}:{:02}:{:02} UTC", second / 3_600, second / 60 % 60, second % 60)
}

/// The same for machines.
pub(super) fn machine(at: SystemTime) -> String {
    moment(at).replacen(' ', "T", 1).replace(" UTC", "Z")
}

/// `3 days`, `2 h`: one unit, rounded down.
pub(super) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// `3 days ago`, `in 2 h`, `now`.
pub(super) fn ago(at: SystemTime, now: SystemTime) -> String {
    match now.duration_since(at) {
        Ok(age) if age < Duration::from_secs(1) => "now".to_owned(),
        Ok(age) => format!("{} ago", span(age)),
        Err(ahead) => format!("in {}", span(ahead.duration())),
    }
}

/// A duration to the millisecond: `1.204 s`.
pub(super) fn exact(took: Duration) -> String {
    if took < Duration::from_secs(1) {
        format!("{} ms", took.as_millis())
    } else {
        format!("{:.1} s", took.as_secs_f64())
    }
}

/// `1 234 567`: a number in groups of three, by a narrow space.
pub(super) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// `1 letter`, `2 letters`.
pub(super) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { many })
}

/// `12.3 KiB`.
pub(super) fn bytes(n: u64) -> String {
    let (kib, mib, gib) = (1 << 10, 1 << 20, 1 << 30);
    let in_units = |unit: u64, name: &str| format!("{}.{} {name}", n / unit, n % unit * 10 / unit);
    match n {
        n if n >= gib => in_units(gib, "GiB"),
        n if n >= mib => in_units(mib, "MiB"),
        n if n >= kib => in_units(kib, "KiB"),
        n => format!("{n} bytes"),
    }
}

/// Milliseconds since the epoch: what places in lists are made of.
pub(super) fn millis(at: SystemTime) -> u128 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_turns_or_steers_is_spelled_out() {
        let shown = text("a\u{202e}b\u{1b}[31mc\u{200b}\u{0}\u{feff}\r\n\td\u{e0041}", 1_000);
        assert_eq!(shown, "a\\u{202e}b\\u{1b}[31mc\\u{200b}\\u{0}\\u{feff}\n\td\\u{e0041}");
        assert_eq!(line("a\nb\tc", 100), "a b c");
        assert_eq!(text("šžř 漢字 👩‍👩‍👧 مرحبا", 100), "šžř 漢字 👩‍👩‍👧 مرحبا", "letters of all people stay");
    }

    #[test]
    fn a_long_text_is_cut_in_its_middle() {
        let shown = text(&"x".repeat(10 << 20), 2_000);
        assert!(shown.len() < 2_100 && shown.contains("cut"), "{}", shown.len());
    }

    #[test]
    fn times_and_numbers_read_well() {
        let at = UNIX_EPOCH + Duration::from_secs(1_709_164_800 + 3_661);
        assert_eq!((moment(at).as_str(), machine(at).as_str()), ("2024-02-29 01:01:01 UTC", "2024-02-29T01:01:01Z"));
        assert_eq!(ago(at, at + Duration::from_secs(7_200)), "2 h ago");
        assert_eq!(ago(at + Duration::from_secs(90), at), "in 1 min");
        assert_eq!((number(1_234_567), number(12)), ("1\u{202f}234\u{202f}567".to_owned(), "12".to_owned()));
        assert_eq!((bytes(1_536), bytes(12)), ("1.5 KiB".to_owned(), "12 bytes".to_owned()));
    }
}
