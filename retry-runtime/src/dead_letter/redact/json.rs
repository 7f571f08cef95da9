//! Secrets in JSON: the text is copied, and only what is a secret is written anew.

use std::borrow::Cow;

use super::{REDACTED, Redactor};

/// `json` is valid JSON.
pub(super) fn redacted<'t>(redactor: &Redactor, json: &'t str) -> Cow<'t, str> {
    let mut out = String::new();
    // Up to here it is copied.
    let mut copied = 0;
    let mut at = 0;
    let mut replace = |from: usize, to: usize, with: &str| {
        out.push_str(json.get(copied..from).unwrap_or_default());
        out.push_str(with);
        copied = to;
    };
    while let Some(start) = json.get(at..).and_then(|rest| rest.find('"')).map(|found| at + found) {
        let end = string_end(json, start);
        at = end;
        let string = json.get(start..end).unwrap_or_default();
        let colon = skip_space(json, end);
        if json.as_bytes().get(colon) == Some(&b':') {
            if redactor.is_key(&decoded(string)) {
                let from = skip_space(json, colon + 1);
                let to = value_end(json, from);
                // Nothing is hidden in nothing.
                if !matches!(json.get(from..to), Some("null" | "\"\"")) {
                    replace(from, to, &format!("\"{REDACTED}\""));
                }
                at = to;
            }
            continue;
        }
        let text = decoded(string);
        if let Cow::Owned(clean) = redactor.text(&text) {
            replace(start, end, &serde_json::Value::String(clean).to_string());
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

fn decoded(string: &str) -> Cow<'_, str> {
    let inner = string.get(1..string.len().saturating_sub(1)).unwrap_or_default();
    if inner.contains('\\') {
        serde_json::from_str(string).map_or(Cow::Borrowed(inner), Cow::Owned)
    } else {
        Cow::Borrowed(inner)
    }
}

/// Behind the string that begins at `start`.
fn string_end(json: &str, start: usize) -> usize {
    let mut escaped = false;
    for (n, byte) in json.bytes().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return n + 1,
            _ => {}
        }
    }
    json.len()
}

fn skip_space(json: &str, from: usize) -> usize {
    let rest = json.as_bytes().get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Behind the value that begins at `from`.
fn value_end(json: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while let Some(byte) = json.as_bytes().get(at) {
        match byte {
            b'"' => {
                at = string_end(json, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            byte if byte.is_ascii_whitespace() && depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    json.len()
}
