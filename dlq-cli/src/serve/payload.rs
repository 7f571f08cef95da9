//! A payload, made fit for a page: as it is written, in lines, with what hides spelled out the way JSON does it.

use std::fmt::Write as _;

/// So much of a payload is shown.
pub(super) const SHOWN: usize = 64 << 10;

/// A larger one is not edited in a browser.
pub(super) const EDITABLE: usize = 256 << 10;

/// JSON in lines: white space is all that changes. What is no JSON stays in one line.
pub(super) fn in_lines(json: &str) -> String {
    if serde_json::from_str::<serde::de::IgnoredAny>(json).is_err() {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let mut chars = json.chars().filter(|c| *c != '\u{feff}').peekable();
    while let Some(c) = chars.next() {
        if in_text {
            out.push(c);
            (in_text, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        match c {
            '"' => {
                in_text = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                if chars.peek().is_some_and(|next| matches!(next, '}' | ']')) {
                    out.extend(chars.next());
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    // Somebody may send a thousand brackets.
    for _ in 0..depth.min(40) {
        out.push_str("  ");
    }
}

/// The same JSON with what would hide or turn around as JSON's own escapes: an editor sends back what was meant. (Outside of
/// texts JSON has no such characters.)
pub(super) fn with_escapes(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && super::shown::is_spelled_out(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a text does not fail.
                let _written = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_white_space_changes() {
        let json = r#"{"a": [1, 2.50, {"b\"}": "x, y: [z]"}],"c":{}, "d":[ ] ,"e":"\\"}"#;
        let shown = in_lines(json);
        let expected = "{\n  \"a\": [\n    1,\n    2.50,\n    {\n      \"b\\\"}\": \"x, y: [z]\"\n    }\n  ],\n  \"c\": {},\n  \"d\": [],\n  \"e\": \"\\\\\"\n}";
        assert_eq!(shown, expected);
        assert_eq!(in_lines("{no json"), "{no json");
        assert_eq!(in_lines(&in_lines(json)), shown);
        assert!(in_lines(&format!("{}{}", "[".repeat(100), "]".repeat(100))).len() < 20_000);
    }

    #[test]
    fn what_turns_around_is_escaped_and_means_the_same() {
        let json = "{\"a\":\"\u{202e}b\u{e0041}\"}";
        let shown = with_escapes(json);
        assert_eq!(shown, "{\"a\":\"\\u202eb\\udb40\\udc41\"}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(json));
    }
}
