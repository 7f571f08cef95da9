//! Time-ordered identifiers (UUID version 7, RFC 9562), for letters and parkings.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::random;

/// A UUIDv7: 48 bits of Unix milliseconds, then random bits. Its text form sorts by time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u128);

impl Id {
    /// A new one, for this moment.
    pub fn new(now: SystemTime) -> Self {
        let millis = now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
        let bits = u128::from(random::next_u64()) << 64 | u128::from(random::next_u64());
        let version = 7_u128 << 76;
        let variant = 0b10_u128 << 62;
        let random = bits & !(0xF << 76) & !(0b11 << 62) & ((1 << 80) - 1);
        Self((millis & 0xFFFF_FFFF_FFFF) << 80 | version | variant | random)
    }

    /// The identifier of a text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let dashes = [8, 13, 18, 23];
        let well_formed = text.len() == 36
            && text
                .bytes()
                .enumerate()
                .all(|(i, b)| if dashes.contains(&i) { b == b'-' } else { b.is_ascii_hexdigit() });
        if !well_formed {
            return None;
        }
        u128::from_str_radix(&text.replace('-', ""), 16).ok().map(Self)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            n >> 96,
            n >> 80 & 0xFFFF,
            n >> 64 & 0xFFFF,
            n >> 48 & 0xFFFF,
            n & 0xFFFF_FFFF_FFFF
        )
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn text_form_round_trips_and_has_version_and_variant() {
        for _ in 0..100 {
            let id = Id::new(UNIX_EPOCH + Duration::from_millis(0x0123_4567_89AB));
            let text = id.to_string();
            assert!(text.starts_with("01234567-89ab-7"), "{text}");
            assert!(matches!(text.as_bytes().get(19), Some(b'8' | b'9' | b'a' | b'b')), "{text}");
            assert_eq!(Id::parse(&text), Some(id));
        }
        assert_eq!(Id::parse("not an id"), None);
    }

    #[test]
    fn two_are_never_equal() {
        let now = SystemTime::now();
        let ids: std::collections::HashSet<_> = (0..10_000).map(|_| Id::new(now)).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
