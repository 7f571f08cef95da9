//! Where the value of a secret key begins and ends, in a text of any kind.

use super::text::is_word;

/// A value that was found.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// Where it begins, behind its quote.
    pub(super) at: usize,
    pub(super) form: Form,
}

#[derive(Clone, Copy)]
pub(super) enum Form {
    Quoted(Quote),
    Bare,
    /// `<password>` stands before it.
    Element,
    /// On the lines below, indented.
    Block,
}

/// An opening quote.
#[derive(Clone, Copy)]
pub(super) struct Quote {
    mark: char,
    /// The backslashes before it.
    slashes: usize,
    /// The `#` of a raw string.
    hashes: usize,
}

impl Quote {
    /// Where the text behind it ends: at its quote behind as many backslashes; at the end where there is none.
    pub(super) fn closing(self, rest: &str) -> usize {
        self.closed(rest).unwrap_or(rest.len())
    }

    fn closed(self, rest: &str) -> Option<usize> {
        let Self { mark: quote, slashes, hashes } = self;
        if hashes > 0 {
            return rest.find(&format!("{quote}{}", "#".repeat(hashes)));
        }
        let mut run = 0_usize;
        let mut chars = rest.char_indices().peekable();
        while let Some((n, c)) = chars.next() {
            match c {
                '\\' => run += 1,
                c if c == quote && run % (2 * (slashes + 1)) == slashes => {
                    // Doubled, as SQL has it.
                    if slashes > 0 || n == 0 || chars.peek().is_none_or(|(_, next)| *next != quote) {
                        return Some(n - slashes);
                    }
                    chars.next();
                    run = 0;
                }
                _ => run = 0,
            }
        }
        None
    }
}

/// The value behind the key at `key`, where one is.
pub(super) fn behind(text: &str, (start, end): (usize, usize)) -> Option<Found> {
    let rest = text.get(end..)?;
    let before = text.get(..start)?;
    if before.ends_with('<') && rest.starts_with('>') {
        return Some(Found { at: end + 1, form: Form::Element });
    }
    // A value in a type of the key's name: `ApiKey("..")`, `Token { value: ".." }`.
    if rest.starts_with('(') && opening(text, end + 1).is_some() {
        return Some(Found { at: end, form: Form::Bare });
    }
    let is_type = text.get(start..end)?.starts_with(|c: char| c.is_ascii_uppercase());
    if is_type && rest.strip_prefix(" {").is_some_and(has_fields) {
        return Some(Found { at: end + 1, form: Form::Bare });
    }
    // The key's own closing quote.
    let unescaped = rest.trim_start_matches('\\');
    let unquoted = unescaped.strip_prefix(['"', '\'', '`']);
    let spaced = unquoted.unwrap_or(rest).trim_start_matches([' ', '\t']);
    if unquoted.is_some() {
        // The next of a pair.
        if let Some(next) = spaced.strip_prefix(',') {
            let at = text.len() - next.trim_start().len();
            return opening(text, at)
                .map(|(at, quote)| Found { at, form: Form::Quoted(quote) })
                .or_else(|| wrapped(text.get(at..)?).then_some(Found { at, form: Form::Bare }))
                .filter(|_| opens_a_pair(before));
        }
    }
    // A path of Rust, or the scheme of a URL.
    if spaced.starts_with("::") || spaced.starts_with("://") {
        return None;
    }
    let value = [":", "=", "%3D", "%3d", "%3A", "%3a"].iter().find_map(|sign| spaced.strip_prefix(sign))?;
    let value = value.trim_start_matches(['=', '>']).trim_start_matches([' ', '\t']);
    let at = text.len() - value.len();
    if let Some((at, quote)) = opening(text, at) {
        return Some(Found { at, form: Form::Quoted(quote) });
    }
    let marked = value.trim_start_matches(['|', '>', '-', '+']).trim_start_matches([' ', '\t', '\r']);
    if marked.starts_with('\n') {
        return below(text, text.len() - marked.len(), marked.len() < value.len() && value.starts_with(['|', '>']));
    }
    if value.is_empty() { None } else { Some(Found { at, form: Form::Bare }) }
}

/// The value on the lines below `at`: in quotes or brackets, or indented.
fn below(text: &str, at: usize, is_block: bool) -> Option<Found> {
    let rest = text.get(at..)?;
    let lines = rest.trim_start();
    let indent = rest.len() - lines.len();
    let from = at + indent;
    if let Some((at, quote)) = opening(text, from) {
        return Some(Found { at, form: Form::Quoted(quote) });
    }
    if lines.is_empty() || !(wrapped(lines) || rest.get(..indent)?.ends_with([' ', '\t'])) {
        return None;
    }
    if is_block {
        return Some(Found { at: from, form: Form::Block });
    }
    // An entry of a list.
    let entry = lines.strip_prefix("- ").unwrap_or(lines).trim_start_matches(' ');
    let at = text.len() - entry.len();
    let (at, form) = opening(text, at).map_or((at, Form::Bare), |(at, quote)| (at, Form::Quoted(quote)));
    Some(Found { at, form })
}

/// The quote at `at`, behind what may stand before one (`&`, `b`, `r#`, backslashes): where its text begins.
pub(super) fn opening(text: &str, at: usize) -> Option<(usize, Quote)> {
    let rest = text.get(at..)?.trim_start_matches(['&', '*', '@']);
    let prefix = rest.find(|c: char| !c.is_ascii_alphabetic()).filter(|length| *length <= 2).unwrap_or(0);
    let is_prefix = matches!(
        rest.get(..prefix)?.to_ascii_lowercase().as_str(),
        "" | "b" | "r" | "br" | "rb" | "f" | "fr" | "u" | "c" | "cr" | "n" | "l"
    );
    let raw = if is_prefix { rest.get(prefix..)? } else { rest };
    let unhashed = if prefix > 0 { raw.trim_start_matches('#') } else { raw };
    let unescaped = unhashed.trim_start_matches('\\');
    let inner = unescaped.strip_prefix(['"', '\'', '`'])?;
    let mark = unescaped.chars().next()?;
    let (hashes, slashes) = (raw.len() - unhashed.len(), unhashed.len() - unescaped.len());
    Some((text.len() - inner.len(), Quote { mark, slashes, hashes }))
}

/// Whether a value is in brackets, or in a constructor: `[`, `{`, `Some(`, `&Cow::Borrowed(`, `Token { `.
pub(super) fn wrapped(rest: &str) -> bool {
    let rest = rest.trim_start_matches(['&', '*', '@']);
    let name = path_len(rest);
    let behind = rest.get(name..).unwrap_or_default();
    behind.starts_with(['(', '[', '{'])
        || (rest.starts_with(|c: char| c.is_ascii_uppercase()) && behind.starts_with(" {"))
}

fn path_len(rest: &str) -> usize {
    rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len())
}

/// The length of a value in brackets, with all that hangs on it; all of the rest where they are not closed.
pub(super) fn tree(rest: &str) -> usize {
    let sigils = rest.len() - rest.trim_start_matches(['&', '*', '@']).len();
    let name = path_len(rest.get(sigils..).unwrap_or_default());
    let mut at = sigils + name;
    if rest.get(at..).is_some_and(|behind| behind.starts_with(" {")) {
        at += 1;
    }
    let mut depth = 0_usize;
    let mut singles = true;
    let mut before = ' ';
    while let Some(c) = rest.get(at..).and_then(|rest| rest.chars().next()) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            '"' | '\\' => {
                if let Some((inner, quote)) = opening(rest, at) {
                    at = inner + quote.closing(rest.get(inner..).unwrap_or_default()) + quote.slashes + 1;
                    before = '"';
                    if depth == 0 {
                        return at.min(rest.len());
                    }
                    continue;
                }
            }
            // An apostrophe is none. Where one is not closed, no later one is.
            '\'' if singles && !before.is_alphanumeric() => {
                let quote = Quote { mark: '\'', slashes: 0, hashes: 0 };
                match quote.closed(rest.get(at + 1..).unwrap_or_default()) {
                    Some(length) => {
                        at += length + 2;
                        before = c;
                        continue;
                    }
                    None => singles = false,
                }
            }
            _ => {}
        }
        before = c;
        at += c.len_utf8();
        let next = rest.as_bytes().get(at).copied();
        if depth == 0 && !matches!(next, Some(b'(' | b'[' | b'{')) {
            // `.clone()`, and what else is written close to it.
            let close = rest.get(at..).unwrap_or_default();
            return if close.starts_with(|c: char| c.is_alphanumeric()) { at + bare_len(close) } else { at };
        }
    }
    rest.len()
}

/// Whether a brace opens the fields of a value, rather than a block of code.
fn has_fields(rest: &str) -> bool {
    let field = rest.trim_start();
    let name = field.find(|c| !is_word(c)).unwrap_or(field.len());
    name > 0 && field.get(name..).is_some_and(|behind| behind.starts_with(": "))
}

/// Whether what precedes a key in quotes opens a pair: `("`, `['`, `(b"`, `[\"`.
fn opens_a_pair(before: &str) -> bool {
    let unquoted = before.strip_suffix(['"', '\'', '`']).map_or("", |before| before.trim_end_matches('\\'));
    unquoted.trim_end_matches(['&', 'b', 'r', 'u', ' ', '\t', '\n']).ends_with(['(', '[', '{'])
}

/// A value without quotes: to the next white space, or to a quote or a `&` behind which something else begins; without the
/// punctuation at its end.
pub(super) fn bare_len(rest: &str) -> usize {
    let end = rest.char_indices().find(|(n, c)| {
        let behind = || rest.get(n + c.len_utf8()..).unwrap_or_default();
        match c {
            '"' | '\'' | '`' => !behind().starts_with(|c: char| c.is_alphanumeric()),
            '&' => is_next_key(behind()),
            '<' => behind().starts_with('/'),
            c => c.is_whitespace(),
        }
    });
    let end = end.map_or(rest.len(), |(n, _)| n);
    rest.get(..end).unwrap_or_default().trim_end_matches(|c| ",;:.!?)]}>|\\".contains(c)).len()
}

/// `page=`: the next of a query.
fn is_next_key(rest: &str) -> bool {
    let name =
        rest.bytes().take(256).take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.[]%".contains(byte)).count();
    name > 0 && rest.as_bytes().get(name) == Some(&b'=')
}

/// The lines that are indented like the one at `at`, or further.
pub(super) fn block_len(text: &str, at: usize) -> usize {
    let line_start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let indent = text.get(line_start..at).unwrap_or_default();
    let rest = text.get(at..).unwrap_or_default();
    let mut end = 0;
    for (n, line) in rest.split_inclusive('\n').enumerate() {
        if n > 0 && !line.trim().is_empty() && !line.starts_with(indent) {
            break;
        }
        end += line.len();
    }
    rest.get(..end).unwrap_or_default().trim_end().len()
}
