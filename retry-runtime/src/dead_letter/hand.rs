//! What an operator does to one letter by hand: discards it, says that it was resolved, edits its payload.

use std::time::SystemTime;

use crate::attempt::cut_middle;
use crate::dead_letter::{Actor, LetterRow, LetterState};
use crate::error::{StoreError, StoreErrorKind};
use crate::verdict::Disposition;

/// [`LetterRow::closed_reason`]: a replay succeeded.
pub const CLOSED_RECOVERED: &str = "recovered";
/// [`LetterRow::closed_reason`]: an operator [resolved](crate::dead_letter::DeadLetterStore::resolve) it by hand. Its state
/// is `recovered`, and no replay is counted.
pub const CLOSED_BY_HAND: &str = "resolved_by_hand";
/// [`LetterRow::closed_reason`]: an operator [discarded](crate::dead_letter::DeadLetterStore::discard) it.
pub const CLOSED_DISCARDED: &str = "discarded";
/// [`LetterRow::closed_reason`]: a replay's final answer was that nothing is there. Its state is `discarded`.
pub const CLOSED_GONE: &str = "gone";
/// [`LetterRow::closed_reason`]: its replays failed, or died, too often.
pub const CLOSED_ABANDONED: &str = "abandoned";

/// The longest name of an actor that is kept, in bytes. Longer ones are cut in the middle and marked.
pub const MAX_ACTOR_NAME: usize = 256;

/// The longest reason of an actor that is kept, in bytes. Longer ones are cut in the middle and marked.
pub const MAX_ACTOR_REASON: usize = 2048;

/// Another payload for a letter, by hand: see [`DeadLetterStore::edit`](crate::dead_letter::DeadLetterStore::edit).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// Which letter.
    pub letter_id: String,
    /// The revision that was looked at ([`LetterRow::payload_revision`]; 0 for a letter without payload). When it is not the
    /// one a replay uses any more, the edit is refused: it was made from something else.
    pub base_revision: u32,
    /// The whole new payload: JSON text, kept byte for byte.
    pub payload: String,
}

impl Edit {
    /// An edit of the revision that was looked at.
    pub fn new(letter_id: impl Into<String>, base_revision: u32, payload: impl Into<String>) -> Self {
        Self { letter_id: letter_id.into(), base_revision, payload: payload.into() }
    }

    /// Refuses what is not JSON.
    ///
    /// # Errors
    /// `Invalid`, with the line and the column.
    pub fn check(&self) -> Result<(), StoreError> {
        serde_json::from_str::<serde_core::de::IgnoredAny>(&self.payload).map(drop).map_err(|error| {
            let message = format!("the new payload of letter {} is not JSON: {error}", self.letter_id);
            StoreError::new(StoreErrorKind::Invalid, message)
        })
    }
}

/// What an edit did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Edited {
    /// The letter afterwards; its `payload_revision` is the new one.
    pub row: LetterRow,
    /// `false`: the payload was the same, byte for byte, and nothing was changed or written down.
    pub is_changed: bool,
}

impl Edited {
    /// An edit's result; for stores.
    pub fn new(row: LetterRow, is_changed: bool) -> Self {
        Self { row, is_changed }
    }
}

impl Actor {
    /// The same, with a name and a reason that a row has room for.
    #[must_use]
    pub fn bounded(&self) -> Self {
        Self {
            name: cut_middle(&self.name, MAX_ACTOR_NAME).into_owned(),
            reason: cut_middle(&self.reason, MAX_ACTOR_REASON).into_owned(),
        }
    }
}

impl LetterRow {
    /// Closes a parked or abandoned letter: nobody will replay it. Payload and history stay until retention takes them.
    ///
    /// # Errors
    /// `Conflict` for a letter in any other state; nothing is changed then.
    pub fn discard(&mut self, actor: &Actor, now: SystemTime) -> Result<(), StoreError> {
        self.check_open_to_hands("discarded")?;
        self.close(LetterState::Discarded, CLOSED_DISCARDED, actor, now);
        Ok(())
    }

    /// Closes a parked or abandoned letter whose work was done in another way. It is recovered, by hand: no replay is
    /// counted, and [`closed_reason`](Self::closed_reason) tells it from one.
    ///
    /// # Errors
    /// `Invalid` without a reason; `Conflict` for a letter in any other state. Nothing is changed then.
    pub fn resolve(&mut self, actor: &Actor, now: SystemTime) -> Result<(), StoreError> {
        if actor.reason.trim().is_empty() {
            let message = format!("letter {} is resolved without a reason: say how", self.letter_id);
            return Err(StoreError::new(StoreErrorKind::Invalid, message));
        }
        self.check_open_to_hands("resolved by hand")?;
        self.close(LetterState::Recovered, CLOSED_BY_HAND, actor, now);
        Ok(())
    }

    /// Points the letter to an edited payload: as revision `highest + 1`, where `highest` is the highest one kept. The
    /// idempotency key follows the revision; a payload that was altered when it was stored is so no more, and a failure that
    /// was permanent is `unknown` from now on: it was said of another payload.
    ///
    /// # Errors
    /// `Conflict` for a letter that is being replayed, or whose revision is not the one the edit was made from. Nothing is
    /// changed then.
    pub fn edit(&mut self, edit: &Edit, highest: u32) -> Result<(), StoreError> {
        if self.state == LetterState::Replaying {
            let message = format!("letter {} is being replayed: edit it when that has ended", self.letter_id);
            return Err(StoreError::new(StoreErrorKind::Conflict, message));
        }
        if edit.base_revision != self.payload_revision {
            let message = format!(
                "letter {} is at revision {}, and the edit was made from revision {}: look at it again",
                self.letter_id, self.payload_revision, edit.base_revision
            );
            return Err(StoreError::new(StoreErrorKind::Conflict, message));
        }
        self.point_to(highest.max(self.payload_revision).saturating_add(1), &edit.payload);
        self.payload_error = None;
        // That was said of another payload: plans and workers that leave permanent failures out must not leave this one out.
        if self.disposition == Disposition::Permanent {
            self.disposition = Disposition::Unknown;
        }
        Ok(())
    }

    fn check_open_to_hands(&self, becomes: &str) -> Result<(), StoreError> {
        if matches!(self.state, LetterState::Parked | LetterState::Abandoned) {
            return Ok(());
        }
        let message =
            format!("letter {} is {}: only a parked or abandoned letter can be {becomes}", self.letter_id, self.state);
        Err(StoreError::new(StoreErrorKind::Conflict, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: LetterState) -> LetterRow {
        let mut row = LetterRow::new("id", "fetch", "job");
        row.state = state;
        row.payload_revision = 2;
        row
    }

    // S1
    #[test]
    fn a_refusal_changes_nothing() {
        let actor = Actor::new("ann", "seen");
        let now = SystemTime::UNIX_EPOCH;
        for state in [LetterState::Replaying, LetterState::Recovered, LetterState::Discarded] {
            let mut row = row(state);
            let before = row.clone();
            assert_eq!(row.discard(&actor, now).map_err(|error| error.kind()), Err(StoreErrorKind::Conflict));
            assert_eq!(row.resolve(&actor, now).map_err(|error| error.kind()), Err(StoreErrorKind::Conflict));
            assert_eq!(row, before);
        }
        let mut parked = row(LetterState::Parked);
        let before = parked.clone();
        let unsaid = parked.resolve(&Actor::new("ann", " "), now);
        assert_eq!(unsaid.map_err(|error| error.kind()), Err(StoreErrorKind::Invalid));
        let stale = parked.edit(&Edit::new("id", 1, "1"), 2);
        assert_eq!(stale.map_err(|error| error.kind()), Err(StoreErrorKind::Conflict));
        assert_eq!(parked, before);
    }

    #[test]
    fn what_is_not_json_is_named_by_its_place() {
        let error = Edit::new("id", 1, "{\n  \"a\": 1,\n  b\n}").check().map_err(|error| error.to_string());
        let message = error.err().unwrap_or_default();
        assert!(message.contains("letter id") && message.contains("line 3 column 3"), "{message}");
        assert!(Edit::new("id", 1, " [1] ").check().is_ok());
        assert!(Edit::new("id", 1, "").check().is_err());
    }

    // D78: an actor's words never grow a row without bound
    #[test]
    fn an_actor_is_bounded() {
        let long = Actor::new("n".repeat(10_000), "r".repeat(10_000)).bounded();
        assert!(long.name.len() <= MAX_ACTOR_NAME && long.name.contains("bytes cut"), "{}", long.name);
        assert!(long.reason.len() <= MAX_ACTOR_REASON && long.reason.contains("bytes cut"), "{}", long.reason);
        let short = Actor::new("ann", "seen");
        assert_eq!(short.bounded(), short);
    }
}
