//! How long the texts of a letter may be, so that no error and no caller fills a store.
//!
//! Texts for people are cut in the middle and marked. What tells jobs apart is never cut into another job's: beyond its
//! limit it is replaced by its beginning and the hash of the whole. Nothing here keeps a letter from being parked.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::attempt::{AttemptRecord, MAX_MESSAGE, cut_middle, floor_boundary};
use crate::dead_letter::sha256::sha256;
use crate::dead_letter::{DeadLetter, Failure, Finish, Payload, ReplayOutcome};

/// The longest kind and job id that are kept as they are, in bytes. Longer ones are replaced by [`name_within`].
pub const MAX_NAME: usize = 64 << 10;

/// The longest class, label (`model`) and error type that are kept, in bytes. Longer ones are cut in the middle and marked.
pub const MAX_LABEL: usize = 1024;

/// How much is shown of a name that is too long.
const SHOWN: usize = 1024;

/// A name that is not too long; for one that is, its first kilobyte, its length and the SHA-256 of the whole. So the same
/// name is always the same, two names stay two, and one may still be looked for by this.
pub fn name_within(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_NAME {
        return Cow::Borrowed(name);
    }
    let mut out = name.get(..floor_boundary(name, SHOWN)).unwrap_or_default().to_owned();
    // Writing to a text does not fail.
    let _written = write!(out, " ...[{} bytes, sha256 ", name.len());
    for byte in sha256(name.as_bytes()) {
        let _written = write!(out, "{byte:02x}");
    }
    out.push(']');
    Cow::Owned(out)
}

pub(super) fn cut(text: &mut String, max: usize) {
    if text.len() > max {
        *text = cut_middle(text, max).into_owned();
    }
}

fn cut_some(text: &mut Option<String>, max: usize) {
    if let Some(text) = text {
        cut(text, max);
    }
}

fn cut_records(records: &mut [AttemptRecord]) {
    for record in records {
        cut(&mut record.message, MAX_MESSAGE);
        if record.class.len() > MAX_LABEL {
            record.class = Cow::Owned(cut_middle(&record.class, MAX_LABEL).into_owned());
        }
    }
}

impl DeadLetter {
    /// The same, with texts a store has room for. A store does this to every letter it takes; twice is the same as once.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        for name in [Some(&mut self.kind), self.job_id.as_mut()].into_iter().flatten() {
            if let Cow::Owned(within) = name_within(name) {
                *name = within;
            }
        }
        cut_some(&mut self.model, MAX_LABEL);
        cut_some(&mut self.class, MAX_LABEL);
        cut(&mut self.error_type, MAX_LABEL);
        cut(&mut self.error_message, MAX_MESSAGE);
        cut_records(&mut self.history);
        if let Payload::Unserializable(why) = &mut self.payload {
            cut(why, MAX_MESSAGE);
        }
        self
    }
}

impl Failure {
    fn bound(&mut self) {
        cut_some(&mut self.class, MAX_LABEL);
        cut(&mut self.error_type, MAX_LABEL);
        cut(&mut self.error_message, MAX_MESSAGE);
    }
}

impl Finish {
    /// The same, with texts a store has room for. A store does this to every result it takes.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        match &mut self.outcome {
            ReplayOutcome::Recovered => {}
            ReplayOutcome::Gone(failure) | ReplayOutcome::Failed(failure) => failure.bound(),
        }
        cut_records(&mut self.history);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::StopReason;
    use proptest::prelude::*;
    use std::time::SystemTime;

    // D78: a long job id stays its own.
    #[test]
    fn a_name_too_long_is_never_another_s() {
        let long = "é".repeat(MAX_NAME);
        let (one, other) = (format!("{long}1"), format!("{long}2"));
        assert_ne!(name_within(&one), name_within(&other));
        assert_eq!(name_within(&one), name_within(&one.clone()));
        assert!(name_within(&one).len() < 2 * SHOWN && name_within(&one).starts_with("éé"), "{}", name_within(&one));
        assert!(name_within(&one).contains("131073 bytes, sha256 "), "{}", name_within(&one));
        let just = "x".repeat(MAX_NAME);
        assert_eq!(name_within(&just), just);
    }

    proptest! {
        // D78
        #[test]
        fn no_text_of_a_letter_is_without_bound(sizes in proptest::array::uniform8(0..200_000_usize)) {
            let text = |n: usize| "aé".chars().cycle().take(sizes[n] / 2).collect::<String>();
            let mut letter = DeadLetter::new(text(0), StopReason::Exhausted, SystemTime::UNIX_EPOCH);
            (letter.job_id, letter.model, letter.class) = (Some(text(1)), Some(text(2)), Some(text(3)));
            (letter.error_type, letter.error_message) = (text(4), text(5));
            letter.payload = Payload::Unserializable(text(6));
            let mut record = AttemptRecord::new(1, SystemTime::UNIX_EPOCH, std::time::Duration::ZERO, text(7), None, "");
            record.message = text(7);
            letter.history = vec![record];
            let bounded = letter.bounded();
            let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
            prop_assert!(bounded.kind.len() <= MAX_NAME && length(&bounded.job_id) <= MAX_NAME);
            prop_assert!(length(&bounded.model) <= MAX_LABEL && length(&bounded.class) <= MAX_LABEL);
            prop_assert!(bounded.error_type.len() <= MAX_LABEL && bounded.error_message.len() <= MAX_MESSAGE);
            prop_assert!(bounded.history.iter().all(|record| record.message.len() <= MAX_MESSAGE && record.class.len() <= MAX_LABEL));
            prop_assert!(matches!(&bounded.payload, Payload::Unserializable(why) if why.len() <= MAX_MESSAGE));
            prop_assert_eq!(bounded.clone().bounded(), bounded);
        }
    }
}
