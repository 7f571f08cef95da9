//! Secrets in a text of any kind: one walk, word by word.

use std::borrow::Cow;

use super::{REDACTED, Redactor};
use crate::attempt::floor_boundary;

/// Keys that are secrets in the query of a URL only: in prose they are words.
const QUERY_KEYS: [&str; 6] = ["key", "sig", "signature", "auth", "xamzsignature", "xgoogsignature"];

/// Headers whose value is the rest of the line.
const LINE_KEYS: [&str; 4] = ["authorization", "proxyauthorization", "cookie", "setcookie"];

/// Schemes that are followed by one word.
const SCHEMES: [&str; 5] = ["bearer", "basic", "token", "apikey", "negotiate"];

pub(super) fn redacted<'t>(redactor: &Redactor, text: &'t str) -> Cow<'t, str> {
    if redactor.keys.is_empty() && !redactor.finds_forms {
        return Cow::Borrowed(text);
    }
    let mut walk = Walk { redactor, text, out: String::new(), copied: 0 };
    let mut at = 0;
    while at < text.len() {
        at = walk.step(at);
    }
    if walk.copied == 0 && walk.out.is_empty() {
        return Cow::Borrowed(text);
    }
    walk.out.push_str(text.get(walk.copied..).unwrap_or_default());
    if walk.out == text { Cow::Borrowed(text) } else { Cow::Owned(walk.out) }
}

struct Walk<'t> {
    redactor: &'t Redactor,
    text: &'t str,
    out: String,
    /// Up to here the text is in `out`.
    copied: usize,
}

impl Walk<'_> {
    /// Looks at what begins at `at`; where to go on, always further on.
    fn step(&mut self, at: usize) -> usize {
        let rest = self.rest(at);
        let Some(first) = rest.chars().next() else { return self.text.len() };
        if self.redactor.finds_forms && rest.starts_with("://") {
            return self.userinfo(at + 3);
        }
        if !is_word(first) {
            return at + first.len_utf8();
        }
        let end = at + rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = self.text.get(at..end).unwrap_or_default();
        let in_query = at > 0 && matches!(self.text.as_bytes().get(at - 1), Some(b'?' | b'&'));
        let name = if word.len() <= 256 { super::normal(word) } else { String::new() };
        let is_query_key = self.redactor.finds_forms && in_query && QUERY_KEYS.contains(&name.as_str());
        let is_secret = is_query_key || self.redactor.is_key(word);
        if let Some((value, quoted)) = is_secret.then(|| value_of(self.text, end)).flatten() {
            return self.value(value, quoted, &name);
        }
        if self.redactor.finds_forms && (name == "bearer" || name == "basic") {
            return self.scheme(end);
        }
        end
    }

    /// The value of a secret key begins at `at`, behind a quote with so many backslashes less one, if `quoted` is not 0.
    fn value(&mut self, at: usize, quoted: usize, name: &str) -> usize {
        let rest = self.rest(at);
        let Some(first) = rest.chars().next() else { return at };
        if quoted > 0 {
            // `quoted - 1` backslashes and the quote stand before it.
            let quote = self.text.get(..at).and_then(|before| before.chars().next_back()).unwrap_or('"');
            let end = at + closing(rest, quote, quoted - 1);
            return if end == at { at } else { self.replace(at, end) };
        }
        if matches!(first, '[' | '{') {
            return self.replace(at, at + balanced(rest));
        }
        if LINE_KEYS.contains(&name) {
            let word = word_len(rest);
            let scheme = rest.get(..word).unwrap_or_default().to_ascii_lowercase();
            let end = if SCHEMES.contains(&scheme.as_str()) {
                let gap =
                    rest.get(word..).map_or(0, |behind| behind.len() - behind.trim_start_matches([' ', '\t']).len());
                word + gap + rest.get(word + gap..).map_or(0, value_len)
            } else {
                rest.find(['\n', '\r', '"', '\'', '`']).unwrap_or(rest.len())
            };
            let end = rest.get(..end).unwrap_or_default().trim_end().len();
            return if end == 0 { at } else { self.replace(at, at + end) };
        }
        let length = value_len(rest);
        if length == 0 { at } else { self.replace(at, at + length) }
    }

    /// Behind `Bearer` or `Basic`: the next word, if it looks like a token rather than like English.
    fn scheme(&mut self, end: usize) -> usize {
        let rest = self.rest(end);
        let gap = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if gap == 0 {
            return end;
        }
        let from = end + gap;
        let word = self.rest(from);
        let length = word.find(|c: char| !(c.is_ascii_alphanumeric() || "-._~+/=".contains(c))).unwrap_or(word.len());
        let token = word.get(..length).unwrap_or_default().trim_end_matches('.');
        let odd = |c: char| c.is_ascii_digit() || "._~+/=".contains(c);
        let mixed =
            token.chars().skip(1).any(|c| c.is_ascii_uppercase()) && token.chars().any(|c| c.is_ascii_lowercase());
        if token.len() >= 6 && (token.contains(odd) || mixed || token.len() >= 24) {
            return self.replace(from, from + token.len());
        }
        from
    }

    /// Behind `://`: the user information of a URL.
    fn userinfo(&mut self, at: usize) -> usize {
        let rest = self.rest(at);
        let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'`<>\\".contains(c)).unwrap_or(rest.len());
        match rest.get(..end).and_then(|authority| authority.rfind('@')) {
            Some(length) if length > 0 => self.replace(at, at + length),
            Some(_) => at,
            None => match unescaped_userinfo(rest, end) {
                Some(length) => self.replace(at, at + length),
                None => at,
            },
        }
    }

    fn replace(&mut self, from: usize, to: usize) -> usize {
        self.out.push_str(self.text.get(self.copied..from).unwrap_or_default());
        self.out.push_str(REDACTED);
        // A message that was cut in the middle may have been cut in the middle of a secret: its other end goes too.
        // So does what was cut again.
        let mut to = to;
        while let cut @ 1.. = cut_mark(self.rest(to)) {
            to += cut;
        }
        self.copied = to;
        to
    }

    fn rest(&self, at: usize) -> &str {
        self.text.get(at..).unwrap_or_default()
    }
}

/// A password with a slash that should have been escaped: what looks like a port is no number, and an `@` comes later.
fn unescaped_userinfo(rest: &str, end: usize) -> Option<usize> {
    let (_, port) = rest.get(..end)?.split_once(':')?;
    if port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // No user information is longer; and a text full of these stays quick.
    let near = rest.get(..floor_boundary(rest, 512))?;
    let run = near.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(near.len());
    near.get(..run)?.rfind('@')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// Where the value behind a key begins, and, for one in quotes, how many backslashes are before its quote, plus one.
fn value_of(text: &str, end: usize) -> Option<(usize, usize)> {
    let rest = text.get(end..)?;
    // The key's own closing quote.
    let behind = rest.trim_start_matches('\\');
    let behind = behind.strip_prefix(['"', '\'', '`']).unwrap_or(rest);
    let spaced = behind.trim_start_matches([' ', '\t']);
    let value = spaced.strip_prefix([':', '='])?;
    // A path of Rust, or the scheme of a URL.
    if spaced.starts_with("::") || spaced.starts_with("://") {
        return None;
    }
    let value = value.trim_start_matches(['=', '>']).trim_start_matches([' ', '\t']);
    let opened = value.trim_start_matches('\\');
    let slashes = value.len() - opened.len();
    match opened.strip_prefix(['"', '\'', '`']) {
        Some(inner) => Some((text.len() - inner.len(), slashes + 1)),
        None if value.is_empty() => None,
        None => Some((text.len() - value.len(), 0)),
    }
}

/// Where the quoted text ends: at its quote behind as many backslashes as stood before the opening one; at the end where there
/// is none.
fn closing(rest: &str, quote: char, slashes: usize) -> usize {
    let mut run = 0_usize;
    for (n, c) in rest.char_indices() {
        match c {
            '\\' => run += 1,
            c if c == quote && run % (2 * (slashes + 1)) == slashes => return n - slashes,
            _ => run = 0,
        }
    }
    rest.len()
}

/// Behind the closing bracket of the one it begins with; the end where there is none.
fn balanced(rest: &str) -> usize {
    let mut depth = 0_usize;
    for (n, byte) in rest.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return n + 1;
                }
            }
            _ => {}
        }
    }
    rest.len()
}

fn word_len(rest: &str) -> usize {
    rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

/// A value without quotes: to the next white space, quote or `&`, without the punctuation at its end.
fn value_len(rest: &str) -> usize {
    let end = rest.find(|c: char| c.is_whitespace() || "\"'`&<>".contains(c)).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default().trim_end_matches(|c| ",;:.!?)]}|\\".contains(c)).len()
}

/// The mark of a cut and the word behind it, where the rest begins with it.
fn cut_mark(rest: &str) -> usize {
    let length = || {
        let behind = rest.strip_prefix(" ...[")?.trim_start_matches(|c: char| c.is_ascii_digit());
        let tail = behind.strip_prefix(" bytes cut]... ")?;
        Some((rest.len() - tail.len(), value_len(tail)))
    };
    match length() {
        Some((mark, word)) if word > 0 => mark + word,
        _ => 0,
    }
}
