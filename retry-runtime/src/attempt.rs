//! The record of one failed attempt, and the bounded history of a call.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

/// The longest error message kept in a record, in bytes. Longer ones are cut in the middle and marked.
pub const MAX_MESSAGE: usize = 2048;

/// One failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptRecord {
    /// Its number, from 1.
    pub attempt: u32,
    /// When it started.
    pub at: SystemTime,
    /// How long the body ran.
    pub took: Duration,
    /// The failure's class.
    pub class: Cow<'static, str>,
    /// The failure's code, where it carries one.
    pub code: Option<i64>,
    /// The error's text, at most [`MAX_MESSAGE`] bytes.
    pub message: String,
    /// The wait that followed; `None` after the last attempt.
    pub wait: Option<Duration>,
}

impl AttemptRecord {
    /// A record without a wait; the message is cut to [`MAX_MESSAGE`]. One that is too long loses what
    /// [`Redactor::standard`](crate::dead_letter::Redactor::standard) takes for secrets before it is cut: behind the cut nobody
    /// would know them.
    pub fn new(
        attempt: u32,
        at: SystemTime,
        took: Duration,
        class: impl Into<Cow<'static, str>>,
        code: Option<i64>,
        message: &str,
    ) -> Self {
        Self { attempt, at, took, class: class.into(), code, message: message_within(message.into()), wait: None }
    }
}

/// Cuts `text` in the middle to at most `max` bytes, on character boundaries, and says how much is gone.
///
/// A `max` too small for the mark itself keeps the beginning only.
pub fn cut_middle(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let mark = format!(" ...[{} bytes cut]... ", text.len() - max);
    // The mark takes room of its own: what it displaces is cut too, and its number grows with it.
    let mark = format!(" ...[{} bytes cut]... ", text.len() - max + mark.len());
    let Some(room) = max.checked_sub(mark.len()) else {
        return Cow::Borrowed(text.get(..floor_boundary(text, max)).unwrap_or_default());
    };
    let head = text.get(..floor_boundary(text, room.div_ceil(2))).unwrap_or_default();
    let tail = text.get(ceil_boundary(text, text.len() - room / 2)..).unwrap_or_default();
    Cow::Owned(format!("{head}{mark}{tail}"))
}

/// No rule looks at more of a message that is too long to be kept.
const MAX_LOOKED_AT: usize = 64 << 10;

/// A message as a record has it, at most [`MAX_MESSAGE`] bytes. No store has looked at it yet, and a secret whose key is cut
/// out is one that nobody finds: it is redacted before it is cut. Of what is longer than that can be quick, the end goes.
pub(crate) fn message_within(text: Cow<'_, str>) -> String {
    if text.len() <= MAX_MESSAGE { text.into_owned() } else { shortened(&text) }
}

#[cold]
fn shortened(text: &str) -> String {
    let near = text.get(..floor_boundary(text, MAX_LOOKED_AT)).unwrap_or_default();
    let mut clean = crate::dead_letter::Redactor::standard().text(near).into_owned();
    if near.len() < text.len() {
        clean.push_str(&end_mark(text.len() - near.len()));
    }
    cut_middle(&clean, MAX_MESSAGE).into_owned()
}

fn end_mark(bytes: usize) -> String {
    format!(" ...[{bytes} bytes cut]...")
}

/// Cuts a text's end, to at most `max` bytes, and says how much is gone.
#[cfg(feature = "stores")]
pub(crate) fn cut_end(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let room = max.saturating_sub(end_mark(text.len()).len());
    let head = text.get(..floor_boundary(text, room)).unwrap_or_default();
    Cow::Owned(format!("{head}{}", end_mark(text.len() - head.len())))
}

/// The text up to the first place where something was cut out of its middle, the mark included.
#[cfg(feature = "stores")]
pub(crate) fn before_cut(text: &str) -> Option<&str> {
    let marks = text.match_indices(" ...[").find_map(|(at, begin)| {
        let behind = text.get(at + begin.len()..)?.trim_start_matches(|c: char| c.is_ascii_digit());
        let tail = behind.strip_prefix(" bytes cut]...")?;
        Some(text.len() - tail.len())
    })?;
    text.get(..marks).filter(|head| head.len() < text.len())
}

pub(crate) fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

fn ceil_boundary(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_untouched() {
        assert_eq!(cut_middle("abc", 3), "abc");
    }

    #[test]
    fn long_text_is_cut_in_the_middle_and_marked() {
        let text = format!("{}{}", "a".repeat(3000), "z".repeat(3000));
        let cut = cut_middle(&text, MAX_MESSAGE);
        assert!(cut.len() <= MAX_MESSAGE);
        assert!(cut.starts_with("aaa") && cut.ends_with("zzz") && cut.contains("bytes cut"));
    }

    // D9: cut behind its key, a secret would be one no more
    #[test]
    fn no_secret_is_behind_a_cut() {
        for (before, after) in [(1_100, 0), (0, 3_000), (1_100, 3_000), (70_000, 0), (65_500, 100)] {
            let secret = "qwfpgjluyarstdhneiozxcvbkm".repeat(77);
            let text = format!("{}authorization: Bearer {secret}, {}", "x ".repeat(before / 2), "y".repeat(after));
            let record = AttemptRecord::new(1, SystemTime::UNIX_EPOCH, Duration::ZERO, "x", None, &text);
            assert!(record.message.len() <= MAX_MESSAGE);
            assert!(!record.message.contains("qwfpgjluy") && !record.message.contains("dhneioz"));
        }
    }

    #[test]
    fn what_is_behind_a_cut_can_go() {
        let text = "a".repeat(5_000);
        let cut = cut_middle(&text, MAX_MESSAGE);
        let head = before_cut(&cut).unwrap_or_default();
        assert!(head.starts_with("aaa") && head.ends_with(" bytes cut]...") && head.len() < 1_100, "{head}");
        assert_eq!(before_cut(head), None);
        let end = cut_end(&text, MAX_MESSAGE);
        assert!(end.len() <= MAX_MESSAGE && end.ends_with(" bytes cut]..."));
        assert_eq!(before_cut(&end), None);
    }

    #[test]
    fn characters_are_never_split() {
        for max in 0..200 {
            let text = "€".repeat(100);
            let cut = cut_middle(&text, max);
            assert!(cut.len() <= max, "{} bytes for {max}", cut.len());
        }
    }
}
