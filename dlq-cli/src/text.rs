//! Text of letters made safe for a terminal.
//!
//! Error messages, job ids and payloads are what some server sent: escape sequences that rename the window or answer by
//! typing, marks that turn the direction of reading, lines of ten megabytes. Shown is what is there, spelt out.

use std::fmt::Write as _;

/// The longest text that is shown in one cell or line unless the caller says otherwise, in characters.
pub const LINE: usize = 200;

/// On one line, every character that a terminal might obey spelt out (`\u{1b}`), cut to [`LINE`] characters.
///
/// ```
/// use dlq_cli::text::line;
///
/// assert_eq!(line("no\tway\x1b[31m"), "no\\tway\\u{1b}[31m");
/// assert_eq!(line("\u{202e}evil"), "\\u{202e}evil");
/// ```
pub fn line(text: &str) -> String {
    cut(text, LINE)
}

/// The same, cut to so many characters; what was cut is marked by `…`.
pub fn cut(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut room = most;
    for c in text.chars() {
        let before = out.len();
        push(&mut out, c, false);
        let took = out.get(before..).map_or(0, |new| new.chars().count());
        if took > room {
            out.truncate(before);
            if room == 0 {
                out.pop();
            }
            out.push('…');
            return out;
        }
        room -= took;
    }
    out
}

/// The whole text, with its line ends; everything else that a terminal might obey is spelt out. For what is asked for by
/// name: a payload, the text of a note.
pub fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut out, c, true);
    }
    out
}

/// At most so many bytes of it and so many lines, then how much is left out.
pub fn some_lines(text: &str, most_bytes: usize, most_lines: usize) -> String {
    let mut end = text.len().min(most_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let shown = text.get(..end).unwrap_or_default();
    let end = shown.match_indices('\n').nth(most_lines.saturating_sub(1)).map_or(end, |(at, _)| at);
    let mut out = lines(text.get(..end).unwrap_or_default());
    let left = text.len() - end;
    if left > 1 {
        // Writing to a text does not fail.
        let _written = write!(out, "\n… {left} bytes more");
    }
    out
}

fn push(out: &mut String, c: char, keeps_lines: bool) {
    match c {
        '\n' if keeps_lines => out.push('\n'),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if is_unsafe(c) => {
            // Writing to a text does not fail.
            let _written = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Control characters, and those that change the order or the look of what stands around them without being seen.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    // The terminal obeys nothing that a server sent.
    #[test]
    fn what_a_terminal_might_obey_is_spelt_out() {
        let hostile =
            "\x1b]0;owned\x07\x1b[2J\u{9b}31m\r\u{202e}gpj.exe\u{2066}\u{200b}\u{feff}\u{e0041}\0\u{7f}\u{85}";
        for shown in [line(hostile), lines(hostile), some_lines(hostile, 1 << 20, 10)] {
            assert!(!shown.chars().any(|c| c.is_control() || is_unsafe(c)), "{shown}");
            assert!(shown.starts_with("\\u{1b}]0;owned\\u{7}"), "{shown}");
        }
        assert_eq!(lines("a\nb\r\n"), "a\nb\\r\n");
        assert_eq!(line("a\nb"), "a\\nb");
        assert_eq!(line("schöne Grüße, 你好, עברית"), "schöne Grüße, 你好, עברית");
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let long = "x".repeat(10 << 20);
        assert_eq!(line(&long).chars().count(), LINE);
        assert_eq!((cut("abcd", 4), cut("abcde", 4)), ("abcd".to_owned(), "abc…".to_owned()));
        // An escape is never cut in the middle.
        assert_eq!(cut("ab\x1bcd", 5), "ab…");
        assert_eq!(some_lines("a\nb\nc", 100, 2), "a\nb\n… 2 bytes more");
        let some = some_lines(&"ä".repeat(1_000), 101, 9);
        assert!(some.starts_with('ä') && some.ends_with("… 1900 bytes more"), "{some}");
        assert_eq!(some_lines("a\n", 100, 1), "a");
    }
}
