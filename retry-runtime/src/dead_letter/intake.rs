//! The door of a store: everything that is stored goes through here, and nothing is changed later.

use std::borrow::Cow;

use super::bounds::cut;
use super::sha256::sha256;
use crate::attempt::{AttemptRecord, MAX_MESSAGE, before_cut, cut_end};
use crate::dead_letter::{DeadLetter, Failure, Finish, LetterRecord, Payload, Redactor, ReplayOutcome, fingerprint};

/// What a store does to every letter and every result before anything is written - rows, attempts, spill lines: secrets are
/// taken out, then texts are [bounded](DeadLetter::bounded).
///
/// By default error texts lose their secrets, and payloads stay as they are: a payload that was altered cannot be replayed. A
/// letter whose payload a rule of the user's did alter says so ([`DeadLetter::payload_altered`]), and is passed over by replays
/// until it is edited, or forced. Fingerprints are made from what is stored, so the same failure is the same group whatever
/// its secret.
///
/// A message that was too long for its record was cut before it came here, without the standard secrets. With keys of your
/// own, what stands behind such a cut goes too, and what is too long here loses its end rather than its middle.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Intake {
    /// For error texts; [`Redactor::standard`] by default.
    pub errors: Redactor,
    /// For payloads; [`Redactor::none`] by default.
    pub payloads: Redactor,
}

impl Default for Intake {
    fn default() -> Self {
        Self { errors: Redactor::standard(), payloads: Redactor::none() }
    }
}

impl Intake {
    /// A letter as it is stored. Twice is the same as once.
    #[must_use]
    pub fn letter(&self, mut letter: DeadLetter) -> DeadLetter {
        self.clean(&mut letter.error_message);
        self.records(&mut letter.history);
        if let Payload::Unserializable(why) = &mut letter.payload {
            self.clean(why);
        }
        if !self.payloads.is_none() && matches!(letter.payload, Payload::Json(_)) {
            let stored = self.payloads.payload(&letter.payload);
            letter.payload_altered |= stored != letter.payload;
            letter.payload = stored;
        }
        letter.bounded()
    }

    /// A replay's result as it is stored.
    #[must_use]
    pub fn finish(&self, mut result: Finish) -> Finish {
        match &mut result.outcome {
            ReplayOutcome::Recovered => {}
            ReplayOutcome::Gone(failure) | ReplayOutcome::Failed(failure) => self.failure(failure),
        }
        self.records(&mut result.history);
        result.bounded()
    }

    fn failure(&self, failure: &mut Failure) {
        self.clean(&mut failure.error_message);
    }

    fn records(&self, records: &mut [AttemptRecord]) {
        for record in records {
            self.clean(&mut record.message);
        }
    }

    /// A letter out of an export as it is stored. Its payloads are redacted as if they were parked here, each revision of
    /// them.
    #[must_use]
    pub fn record(&self, mut record: LetterRecord) -> LetterRecord {
        let row = &mut record.row;
        let said = row.error_message.clone();
        self.clean(&mut row.error_message);
        cut(&mut row.error_message, MAX_MESSAGE);
        if row.error_message != said {
            row.fingerprint = fingerprint(&row.kind, row.class.as_deref(), &row.error_type, &row.error_message);
        }
        if let Some(why) = &mut row.payload_error {
            self.clean(why);
            cut(why, MAX_MESSAGE);
        }
        for entry in &mut record.history {
            self.clean(&mut entry.message);
            cut(&mut entry.message, MAX_MESSAGE);
        }
        if self.payloads.is_none() {
            return record;
        }
        for revision in &mut record.revisions {
            let stored = self.payloads.payload(&revision.payload);
            if stored == revision.payload {
                continue;
            }
            if let Payload::Json(json) = &stored {
                (revision.size, revision.sha256) = (json.len() as u64, sha256(json.as_bytes()));
            }
            if revision.revision == row.payload_revision {
                row.payload_altered = true;
                row.payload_size = Some(revision.size);
            }
            revision.payload = stored;
        }
        record
    }

    fn clean(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.errors.text(text) {
            *text = clean;
        }
        if self.errors.has_own_keys() {
            if let Some(head) = before_cut(text) {
                *text = head.to_owned();
            }
            if let Cow::Owned(head) = cut_end(text, MAX_MESSAGE) {
                *text = head;
            }
        }
    }
}
