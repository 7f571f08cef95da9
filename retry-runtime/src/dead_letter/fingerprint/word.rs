//! Words, numbers and identifiers.

use super::normal::ID;

/// The piece with its numbers and identifiers taken out, word by word.
pub(super) fn words(piece: &str) -> String {
    let mut out = String::with_capacity(piece.len());
    let mut rest = piece;
    while let Some(c) = rest.chars().next() {
        if !is_run(c) {
            out.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            continue;
        }
        if let Some(behind) = behind_uuid(rest) {
            out.push_str(ID);
            rest = behind;
            continue;
        }
        let end = rest.find(|c| !is_run(c)).unwrap_or(rest.len());
        let (run, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let word = word(run);
        out.push_str(&word);
        rest = if word.ends_with('#') { behind_fraction(behind) } else { behind };
    }
    out
}

fn is_run(c: char) -> bool {
    c.is_alphanumeric() || c == '#'
}

/// What is left behind further parts of a number: `.5s` of `30.5s`, `.2.3` of `v1.2.3`.
fn behind_fraction(mut rest: &str) -> &str {
    while let Some(part) = rest.strip_prefix('.').filter(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
        let end = part.find(|c| !is_run(c)).unwrap_or(part.len());
        rest = part.get(end..).unwrap_or_default();
    }
    rest
}

/// What is left behind a UUID.
fn behind_uuid(text: &str) -> Option<&str> {
    let (uuid, behind) = text.split_at_checked(36)?;
    let mut parts = uuid.split('-');
    let lengths = [8, 4, 4, 4, 12];
    let fits = lengths.iter().all(|&length| {
        parts.next().is_some_and(|part| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit()))
    });
    (fits && !behind.starts_with(is_run)).then_some(behind)
}

/// One run of letters and digits. A `#` that is there already counts as a digit, so that a normal form stays as it is.
fn word(run: &str) -> String {
    let is_digit = |c: char| c.is_ascii_digit() || c == '#';
    if !run.contains(is_digit) && !is_hexadecimal(run) {
        // A language of long words has none of this length.
        return if run.chars().count() > 64 { ID.to_owned() } else { run.to_owned() };
    }
    if run.chars().all(is_digit) || is_duration(run) {
        return "#".to_owned();
    }
    let (mut length, mut changes, mut last) = (0_usize, 0_usize, None);
    for c in run.chars() {
        length += 1;
        changes += usize::from(last.is_some_and(|last: bool| last != is_digit(c)));
        last = Some(is_digit(c));
    }
    let mixed = (changes >= 3 && length >= 6) || (changes >= 2 && length >= 12) || length > 64;
    if is_hexadecimal(run) || mixed {
        return ID.to_owned();
    }
    if run.starts_with(is_digit) {
        return "#".to_owned();
    }
    let mut out = String::with_capacity(run.len());
    for c in run.chars() {
        if !is_digit(c) {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

/// 8 and more hexadecimal digits, or any after `0x`.
fn is_hexadecimal(run: &str) -> bool {
    let digits = run.strip_prefix("0x").filter(|digits| !digits.is_empty());
    (digits.is_some() || run.len() >= 8) && digits.unwrap_or(run).bytes().all(|b| b.is_ascii_hexdigit())
}

/// Numbers with units of time: `30s`, `1h2m30s`.
fn is_duration(run: &str) -> bool {
    let mut rest = run;
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '#');
        let behind = unit.trim_start_matches(char::is_alphabetic);
        let name = unit.get(..unit.len() - behind.len()).unwrap_or_default();
        let known = matches!(name, "ns" | "us" | "µs" | "ms" | "s" | "sec" | "m" | "min" | "h" | "d");
        if unit.len() == rest.len() || !known {
            return false;
        }
        rest = behind;
    }
    true
}
