//! Secrets in a text of any kind: one walk, word by word.

use std::borrow::Cow;

use super::value::{self, Form, Found};
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
        let before = at.checked_sub(1).and_then(|at| self.text.as_bytes().get(at)).copied();
        let in_query = matches!(before, Some(b'?' | b'&'));
        let name = if word.len() <= 256 { super::normal(word) } else { String::new() };
        let is_query_key = self.redactor.finds_forms && in_query && QUERY_KEYS.contains(&name.as_str());
        let is_secret = is_query_key || self.redactor.is_key(word);
        if let Some(value) = is_secret.then(|| value::behind(self.text, (at, end))).flatten() {
            return self.value(value, &name);
        }
        if self.redactor.finds_forms && (name == "bearer" || name == "basic") {
            return self.scheme(end);
        }
        end
    }

    /// The value of a secret key.
    fn value(&mut self, found: Found, name: &str) -> usize {
        let at = found.at;
        let rest = self.rest(at);
        let end = match found.form {
            Form::Quoted(quote) => quote.closing(rest),
            // What is gone already.
            _ if rest.starts_with(REDACTED) => REDACTED.len(),
            Form::Bare if value::wrapped(rest) => value::tree(rest),
            Form::Bare if LINE_KEYS.contains(&name) => header_len(rest),
            Form::Bare => value::bare_len(rest),
            Form::Element => rest.find('<').unwrap_or(rest.len()),
            Form::Block => value::block_len(self.text, at),
        };
        if end == 0 { at } else { self.replace(at, at + end) }
    }

    /// Behind `Bearer` or `Basic`: the next word, if it looks like a token rather than like English.
    fn scheme(&mut self, end: usize) -> usize {
        let rest = self.rest(end);
        let gap = scheme_gap(rest);
        if gap == 0 {
            return end;
        }
        let from = end + gap;
        if let Some((inner, quote)) = value::opening(self.text, from) {
            let length = quote.closing(self.rest(inner));
            let quoted = self.rest(inner).get(..length).unwrap_or_default();
            let is_token = length > 0 && !quoted.contains(char::is_whitespace);
            return if is_token { self.replace(inner, inner + length) } else { from };
        }
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

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// What is between a scheme and its token: white space, plain or as a URL has it.
fn scheme_gap(rest: &str) -> usize {
    let mut behind = rest;
    loop {
        let shorter = behind.trim_start_matches([' ', '\t', '\n', '\r']);
        let shorter = shorter.strip_prefix("%20").unwrap_or(shorter);
        if shorter.len() == behind.len() {
            return rest.len() - behind.len();
        }
        behind = shorter;
    }
}

/// A header's value: one word behind a scheme, else the rest of the line, up to the quote that ends the text around it.
fn header_len(rest: &str) -> usize {
    let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    let scheme = rest.get(..word).unwrap_or_default().to_ascii_lowercase();
    let gap = scheme_gap(rest.get(word..).unwrap_or_default());
    if gap > 0 && SCHEMES.contains(&scheme.as_str()) {
        let from = word + gap;
        return match value::opening(rest, from) {
            Some((inner, quote)) => inner + quote.closing(rest.get(inner..).unwrap_or_default()),
            None => from + value::bare_len(rest.get(from..).unwrap_or_default()),
        };
    }
    let mut before = ' ';
    let mut in_quotes = None;
    let mut end = rest.len();
    for (n, c) in rest.char_indices() {
        match c {
            '\n' | '\r' => {
                end = n;
                break;
            }
            '"' | '\'' | '`' if in_quotes == Some(c) => in_quotes = None,
            // A parameter's.
            '"' | '\'' | '`' if in_quotes.is_none() && before == '=' => in_quotes = Some(c),
            '"' | '\'' | '`' if in_quotes.is_none() => {
                let behind = rest.get(n + 1..).unwrap_or_default();
                if !behind.starts_with(|c: char| c.is_alphanumeric()) {
                    end = n;
                    break;
                }
            }
            _ => {}
        }
        before = c;
    }
    rest.get(..end).unwrap_or_default().trim_end().len()
}

/// The mark of a cut and the word behind it, where the rest begins with it.
fn cut_mark(rest: &str) -> usize {
    let length = || {
        let behind = rest.strip_prefix(" ...[")?.trim_start_matches(|c: char| c.is_ascii_digit());
        let tail = behind.strip_prefix(" bytes cut]... ")?;
        Some((rest.len() - tail.len(), value::bare_len(tail)))
    };
    match length() {
        Some((mark, word)) if word > 0 => mark + word,
        _ => 0,
    }
}
