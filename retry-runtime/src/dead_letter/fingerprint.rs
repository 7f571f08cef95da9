//! Which failures are one failure.

/// The version of [`fingerprint`]'s rule. Stored beside each fingerprint, so that a better rule never reinterprets old
/// letters.
pub const FINGERPRINT_VERSION: u32 = 1;

/// How much of a message counts.
const COUNTED: usize = 256;

/// The group of a failure: operation, class, error type and the message with what varies taken out (numbers, identifiers,
/// quoted text). 16 hexadecimal digits; the same in every store.
///
/// ```
/// use retry_runtime::dead_letter::fingerprint;
///
/// let a = fingerprint("fetch", Some("timeout"), "app::Error", "no answer from host 17 after 30.5s");
/// let b = fingerprint("fetch", Some("timeout"), "app::Error", "no answer from host 4 after 2.0s");
/// assert_eq!(a, b);
/// ```
pub fn fingerprint(kind: &str, class: Option<&str>, error_type: &str, message: &str) -> String {
    let mut hash = Fnv::new();
    for part in [kind, class.unwrap_or_default(), error_type, &normalise(message)] {
        hash.part(part.as_bytes());
    }
    hash.to_string()
}

/// Words with a digit become `#`, quoted text becomes `?`, white space one blank.
fn normalise(message: &str) -> String {
    let mut out = String::new();
    let mut chars = message.chars().peekable();
    while let Some(c) = chars.next() {
        if out.len() >= COUNTED {
            break;
        }
        if c == '"' || c == '`' {
            out.push('?');
            chars.by_ref().find(|&end| end == c);
        } else if c.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else if c.is_alphanumeric() {
            let mut word = String::from(c);
            while let Some(next) = chars.next_if(|&next| next.is_alphanumeric() || matches!(next, '-' | '_' | '.')) {
                word.push(next);
            }
            out.push_str(if word.contains(|c: char| c.is_ascii_digit()) { "#" } else { &word });
        } else {
            out.push(c);
        }
    }
    out
}

/// FNV-1a, 64 bits: small, stable for ever, and nobody attacks a group number.
pub(super) struct Fnv(u64);

impl Fnv {
    pub(super) const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    pub(super) fn part(&mut self, bytes: &[u8]) {
        // The length's separator keeps ("ab", "c") and ("a", "bc") apart: 0xFF is no byte of UTF-8.
        for &byte in bytes.iter().chain(&[0xFF]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

impl std::fmt::Display for Fnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_taken_out() {
        let message = "job 0190b5a2-77aa-7bbb   said \"secret text\" in 3.5s: not found";
        assert_eq!(normalise(message), "job # said ? in #: not found");
    }

    #[test]
    fn the_rule_of_version_1_never_changes() {
        assert_eq!(
            fingerprint("fetch", Some("timeout"), "E", "after 3s"),
            fingerprint("fetch", Some("timeout"), "E", "after 4s")
        );
        assert_ne!(fingerprint("ab", Some("c"), "", ""), fingerprint("a", Some("bc"), "", ""));
        assert_eq!(fingerprint("", None, "", ""), "994f76653e2a3951");
    }
}
