//! Which failures are one failure.

mod normal;
mod word;

use crate::dead_letter::fnv::Fnv;
use normal::normalise;

/// The version of [`fingerprint`]'s rule. Stored beside each fingerprint, so that a better rule never reinterprets old
/// letters: a letter has the fingerprint of the version that wrote it until it fails again.
///
/// Version 1 took out words with a digit and text in double quotes and backticks. Version 2 tells numbers, identifiers,
/// addresses, paths and times apart, keeps the letters of a word beside its number, and takes out text in single quotes.
pub const FINGERPRINT_VERSION: u32 = 2;

/// The group of a failure: operation, class, error type and the message with what varies taken out. 16 hexadecimal digits;
/// the same in every store.
///
/// | in the message | in its place |
/// |---|---|
/// | numbers, durations, sizes, versions; the digits of a word (`node17`) | `#` (`node#`) |
/// | UUIDs, ULIDs, 8 and more hexadecimal digits, other tokens that mix letters and digits | `<id>` |
/// | text in `"…"`, `'…'` and backticks; not the apostrophe of `don't` | `<str>` |
/// | IP addresses, `host.name:port`, e-mail addresses; host, path and query of a URL, whose scheme stays | `<addr>` |
/// | paths of files and routes | `<path>` |
/// | dates and times of day | `<time>` |
///
/// Names of hosts without a port stay: they cannot be told from names of types. Of a long message its beginning counts.
///
/// ```
/// use retry_runtime::dead_letter::fingerprint;
///
/// let group = |message| fingerprint("fetch", Some("timeout"), "app::Error", message);
/// assert_eq!(group("no answer from 10.0.0.7:443 after 30.5s"), group("no answer from 10.0.0.9:80 after 2s"));
/// assert_ne!(group("no answer from 10.0.0.7:443 after 30.5s"), group("refused by 10.0.0.7:443 after 30.5s"));
/// ```
pub fn fingerprint(kind: &str, class: Option<&str>, error_type: &str, message: &str) -> String {
    let mut hash = Fnv::new();
    for part in [kind, class.unwrap_or_default(), error_type, &normalise(message)] {
        hash.part(part.as_bytes());
    }
    hash.to_string()
}

#[cfg(test)]
mod tests;
