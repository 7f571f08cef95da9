//! What an operator does to a letter of the store in memory.

use std::time::SystemTime;

use super::{State, Stored};
use crate::dead_letter::{Actor, Edit, Edited, LetterRow, Payload, Revision, RevisionSource};
use crate::error::StoreError;

impl State {
    /// One change of one letter and its event; neither when it is refused.
    pub(super) fn by_hand(
        &mut self,
        letter_id: &str,
        what: &str,
        detail: &str,
        actor: &Actor,
        now: SystemTime,
        change: impl FnOnce(&mut Stored) -> Result<(), StoreError>,
    ) -> Result<LetterRow, StoreError> {
        let stored = self.letter(letter_id)?;
        let before = stored.row.state;
        change(stored)?;
        let row = stored.row.clone();
        self.happened(what, &row, Some(before), actor, detail, now);
        Ok(row)
    }

    pub(super) fn restore(
        &mut self,
        letter_id: &str,
        more_replays: u32,
        actor: &Actor,
        now: SystemTime,
    ) -> Result<LetterRow, StoreError> {
        let detail = format!("{more_replays} more replays");
        self.by_hand(letter_id, "restored", &detail, actor, now, |stored| stored.row.restore(more_replays))
    }

    pub(super) fn discard(&mut self, letter_id: &str, actor: &Actor, now: SystemTime) -> Result<LetterRow, StoreError> {
        self.by_hand(letter_id, "discarded", "", actor, now, |stored| stored.row.discard(actor, now))
    }

    pub(super) fn resolve(&mut self, letter_id: &str, actor: &Actor, now: SystemTime) -> Result<LetterRow, StoreError> {
        self.by_hand(letter_id, "resolved", "", actor, now, |stored| stored.row.resolve(actor, now))
    }

    pub(super) fn edit(&mut self, edit: Edit, actor: &Actor, now: SystemTime) -> Result<Edited, StoreError> {
        let stored = self.letter(&edit.letter_id)?;
        let mut edited = stored.row.clone();
        edited.edit(&edit, stored.highest_revision())?;
        if stored.payload() == Payload::Json(edit.payload.clone()) {
            return Ok(Edited::new(stored.row.clone(), false));
        }
        let detail = format!("revision {} from {}", edited.payload_revision, edit.base_revision);
        let row = self.by_hand(&edit.letter_id, "edited", &detail, actor, now, |stored| {
            let Actor { name, reason } = actor.bounded();
            let mut revision = Revision::new(edited.payload_revision, RevisionSource::Edit, now, edit.payload);
            (revision.actor, revision.reason) = (Some(name), Some(reason));
            stored.payloads.push(revision);
            stored.row = edited;
            Ok(())
        })?;
        Ok(Edited::new(row, true))
    }
}
