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
    /// A record without a wait; the message is cut to [`MAX_MESSAGE`].
    pub fn new(
        attempt: u32,
        at: SystemTime,
        took: Duration,
        class: impl Into<Cow<'static, str>>,
        code: Option<i64>,
        message: &str,
    ) -> Self {
        Self {
            attempt,
            at,
            took,
            class: class.into(),
            code,
            message: cut_middle(message, MAX_MESSAGE).into_owned(),
            wait: None,
        }
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

    #[test]
    fn characters_are_never_split() {
        for max in 0..200 {
            let text = "€".repeat(100);
            let cut = cut_middle(&text, max);
            assert!(cut.len() <= max, "{} bytes for {max}", cut.len());
        }
    }
}
