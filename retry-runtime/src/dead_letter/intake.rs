//! The door of a store: everything that is stored goes through here, and nothing is changed later.

use crate::attempt::AttemptRecord;
use crate::dead_letter::{DeadLetter, Failure, Finish, Payload, Redactor, ReplayOutcome};

/// What a store does to every letter and every result before anything is written - rows, attempts, spill lines: secrets are
/// taken out, then texts are [bounded](DeadLetter::bounded).
///
/// By default error texts lose their secrets, and payloads stay as they are: a payload that was altered cannot be replayed. A
/// letter whose payload a rule of the user's did alter says so ([`DeadLetter::payload_altered`]), and is passed over by replays
/// until it is edited, or forced. Fingerprints are made from what is stored, so the same failure is the same group whatever
/// its secret.
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

    fn clean(&self, text: &mut String) {
        if let std::borrow::Cow::Owned(clean) = self.errors.text(text) {
            *text = clean;
        }
    }
}
