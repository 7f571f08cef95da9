//! A message without what varies, version 2. Never edited after its release: another rule is another version.
//!
//! The message is read once from left to right, in time linear in what is read: blanks, quoted text, and between them pieces
//! that are judged as a whole (a URL, a path, a time) or word by word. Where something was taken out, more may come to light
//! (a quote that was closed inside a path): the reading is repeated until nothing changes, so that a normal form is its own
//! normal form.

use std::net::{IpAddr, SocketAddr};

use super::word;

/// How much of a message is read, in bytes.
const READ: usize = 2_048;

/// How much of the normal form counts, in bytes.
const COUNTED: usize = 256;

/// The readings that are enough for any message seen; what is not stable then is taken as it is.
const READINGS: usize = 8;

/// A longer piece without a blank is no name.
const LONG: usize = 200;

pub(super) const ID: &str = "<id>";
const TEXT: &str = "<str>";
const ADDRESS: &str = "<addr>";
const PATH: &str = "<path>";
const TIME: &str = "<time>";

/// What stands for something that was taken out.
const MARKS: [&str; 5] = [ID, TEXT, ADDRESS, PATH, TIME];

/// The message with what varies taken out.
pub(super) fn normalise(message: &str) -> String {
    let mut text = read(start_of(message, READ));
    for _ in 1..READINGS {
        let again = read(&text);
        if again == text {
            break;
        }
        text = again;
    }
    text
}

/// At most so many bytes of the text, up to a character's end.
fn start_of(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

fn read(text: &str) -> String {
    let mut reading = Reading { rest: text, before: None, out: String::new(), unclosed: [false; 3] };
    while reading.out.len() < COUNTED && !reading.rest.is_empty() {
        let left = reading.rest.len();
        reading.step();
        if reading.rest.len() == left {
            // No rule took anything, which would be a mistake here, and must not be an endless loop there.
            let next = reading.rest.chars().next().map_or(left, char::len_utf8);
            reading.take(next);
        }
    }
    reading.out.truncate(reading.out.trim_end().len());
    reading.out
}

struct Reading<'a> {
    rest: &'a str,
    /// The character before `rest`.
    before: Option<char>,
    out: String,
    /// Of each sort of quote: there is no closing one in the rest. Looked for once, so that the whole stays linear.
    unclosed: [bool; 3],
}

impl<'a> Reading<'a> {
    fn step(&mut self) {
        let Some(c) = self.rest.chars().next() else { return };
        if c.is_whitespace() {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.take(blanks);
            if !self.out.is_empty() && !self.out.ends_with(' ') {
                self.put(" ");
            }
        } else if let Some(mark) = MARKS.iter().find(|mark| self.rest.starts_with(**mark)) {
            self.take(mark.len());
            self.put_mark(mark);
        } else if let Some(length) = self.quoted(c) {
            self.take(length);
            self.put(TEXT);
        } else if is_separator(c) || matches!(c, '"' | '`' | '\'') {
            let taken = self.take(c.len_utf8());
            self.put(taken);
        } else {
            self.piece();
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.before = taken.chars().next_back().or(self.before);
        self.rest = rest;
        taken
    }

    /// Adds to the normal form. What does not fit ends it, whole.
    fn put(&mut self, text: &str) {
        if self.out.len() + text.len() > COUNTED {
            self.rest = "";
        } else {
            self.out.push_str(text);
        }
    }

    fn put_mark(&mut self, mark: &str) {
        // A date and a time of day are one time.
        if mark == TIME && (self.out.ends_with("<time> ") || self.out.ends_with(TIME)) {
            self.out.truncate(self.out.trim_end().len());
        } else {
            self.put(mark);
        }
        if mark == ID {
            // The padding of base64.
            let padding = self.rest.len() - self.rest.trim_start_matches('=').len();
            let behind = self.rest.get(padding..).and_then(|rest| rest.chars().next());
            if padding <= 2 && !behind.is_some_and(is_word) {
                self.take(padding);
            }
        }
    }

    /// The length of the quoted text that begins here.
    fn quoted(&mut self, quote: char) -> Option<usize> {
        let unclosed = match quote {
            '"' => &mut self.unclosed[0],
            '`' => &mut self.unclosed[1],
            // Not an apostrophe, which stands behind a letter.
            '\'' if !self.before.is_some_and(is_word) => &mut self.unclosed[2],
            _ => return None,
        };
        if *unclosed {
            return None;
        }
        let inside = self.rest.get(1..)?;
        if quote == '\'' && inside.starts_with(char::is_whitespace) {
            return None;
        }
        let mut escaped = false;
        let mut chars = inside.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let closes = c == quote && !escaped;
            if closes && (quote != '\'' || !chars.peek().is_some_and(|(_, next)| is_word(*next))) {
                return Some(at + 2);
            }
            escaped = c == '\\' && !escaped;
        }
        *unclosed = true;
        None
    }

    /// A piece without blanks and separators: a URL, an address, a time, a path, or words.
    fn piece(&mut self) {
        let length = self.piece_length();
        let piece = self.rest.get(..length).unwrap_or(self.rest);
        if let Some(scheme) = scheme_of(piece) {
            let url = self
                .rest
                .find(|c: char| c.is_whitespace() || matches!(c, '"' | '`' | '\'' | '<' | '>' | ')' | ']' | '}'));
            let url = self.rest.get(..url.unwrap_or(self.rest.len())).unwrap_or(piece);
            let url = url.trim_end_matches(is_punctuation).len().max(scheme.len() + 3);
            self.take(url);
            if let Some(behind) = self.rest.strip_prefix(ADDRESS) {
                self.rest = behind;
            }
            self.put(&format!("{}://{ADDRESS}", word::words(scheme)));
            return;
        }
        let core = piece.trim_end_matches(is_punctuation);
        if core.is_empty() {
            let taken = self.take(length);
            return self.put(taken);
        }
        if core.len() > LONG {
            self.take(core.len());
            return self.put_mark(ID);
        }
        if is_address(core) {
            self.take(core.len());
            self.put(ADDRESS);
        } else if is_time(core) {
            self.take(core.len());
            self.put_mark(TIME);
        } else if let Some(length) = path_length(core) {
            self.take(length);
            self.put(PATH);
        } else {
            self.take(core.len());
            let words = word::words(core);
            match words.strip_suffix(ID) {
                Some(before) => {
                    self.put(before);
                    self.put_mark(ID);
                }
                None => self.put(&words),
            }
        }
    }

    fn piece_length(&self) -> usize {
        let mut before = self.before;
        for (at, c) in self.rest.char_indices() {
            let opens = c == '\'' && !before.is_some_and(is_word);
            if c.is_whitespace() || matches!(c, '"' | '`') || is_separator(c) || opens {
                return at;
            }
            before = Some(c);
        }
        self.rest.len()
    }
}

fn is_separator(c: char) -> bool {
    matches!(c, '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ',' | ';' | '=' | '|')
}

fn is_punctuation(c: char) -> bool {
    matches!(c, '.' | ':' | ',' | ';' | '!' | '?')
}

/// A part of a word, or what stands for one.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '#' | '<' | '>')
}

fn scheme_of(piece: &str) -> Option<&str> {
    let (scheme, _) = piece.split_once("://")?;
    let starts = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_scheme = starts && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '#'));
    is_scheme.then_some(scheme)
}

fn is_address(piece: &str) -> bool {
    if let Some((name, host)) = piece.split_once('@') {
        return !name.is_empty() && !name.contains('/') && host.starts_with(char::is_alphanumeric);
    }
    // Names in other languages look like addresses of letters alone.
    if piece.contains(|c: char| c.is_ascii_digit())
        && (piece.parse::<IpAddr>().is_ok() || piece.parse::<SocketAddr>().is_ok())
    {
        return true;
    }
    let Some((host, port)) = piece.rsplit_once(':') else { return false };
    let is_port = (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
    let is_name = host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    let of_source = |ending: &str| {
        matches!(
            ending,
            "rs" | "py" | "js" | "ts" | "go" | "java" | "c" | "h" | "cc" | "cpp" | "rb" | "php" | "cs" | "kt"
        )
    };
    let is_host = host == "localhost" || host.rsplit_once('.').is_some_and(|(_, ending)| !of_source(ending));
    is_port && is_name && is_host && host.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// A date, a time of day, or both.
fn is_time(piece: &str) -> bool {
    let allowed = |c: char| c.is_ascii_digit() || matches!(c, '-' | '/' | ':' | '.' | '+' | 'T' | 't' | 'Z' | 'z');
    let shape = |text: &str, pattern: &str| {
        let mut chars = text.chars();
        pattern
            .chars()
            .all(|wanted| chars.next().is_some_and(|c| if wanted == '9' { c.is_ascii_digit() } else { c == wanted }))
    };
    let shapes = ["9999-99-99", "9999/99/99", "99:99:99", "99/99/9999"];
    piece.chars().all(allowed) && shapes.iter().any(|pattern| shape(piece, pattern))
}

/// The length of the path that the piece begins with.
fn path_length(piece: &str) -> Option<usize> {
    let mut chars = piece.chars();
    let drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && piece.get(1..3).is_some_and(|s| s == ":\\");
    if drive {
        return Some(piece.len());
    }
    let path = piece.split(':').next().unwrap_or(piece);
    let begins = |start: &str| {
        path.strip_prefix(start)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_')))
    };
    let absolute = ["/", "./", "../", "~/"].iter().any(|start| begins(start));
    let parts = path.split('/').count();
    let named = parts >= 2 && path.split('/').all(|part| !part.is_empty());
    let ending = path.rsplit_once('.').filter(|(_, ending)| !ending.contains('/')).map(|(_, ending)| ending);
    let of_file = ending.is_some_and(|ending| !ending.is_empty() && ending.chars().all(|c| c.is_ascii_alphabetic()));
    // More than "and/or".
    let relative = named && path.contains(char::is_alphabetic) && (parts >= 3 || of_file);
    (absolute || relative).then_some(path.len())
}
