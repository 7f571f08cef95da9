//! The events of the store in memory: as many as there were.

use std::time::SystemTime;

use super::{MemoryStore, State, later};
use crate::attempt::cut_middle;
use crate::dead_letter::{
    Actor, BoxFuture, EventPage, EventQuery, EventRecord, Incident, LetterRow, LetterState, MAX_ACTOR_REASON, Oversight,
};
use crate::error::StoreError;

impl State {
    /// Writes down what happened to a letter. `row` is the letter after it.
    pub(super) fn happened(
        &mut self,
        what: &str,
        row: &LetterRow,
        before: Option<LetterState>,
        actor: &Actor,
        detail: &str,
        now: SystemTime,
    ) {
        self.note(what, actor, detail, now);
        // A live failure meanwhile is not the operation's doing.
        let operation = self.operations.of_letter(row.seq).filter(|_| what != "parked").cloned();
        if let Some(event) = self.events.last_mut() {
            event.operation = operation;
            event.letter_id = Some(row.letter_id.clone());
            (event.before, event.after) = (before, Some(row.state));
        }
    }

    /// Writes down what happened to the store.
    pub(super) fn note(&mut self, what: &str, actor: &Actor, detail: &str, now: SystemTime) {
        let Actor { name, reason } = actor.bounded();
        // Those of deleted letters go; a number is used once all the same, as each deletion is noted after them.
        let id = self.events.last().map_or(1, |last| last.id + 1);
        let mut event = EventRecord::new(id, crate::dead_letter::whole_millis(now), what);
        (event.actor, event.reason) = (Some(name), Some(reason));
        detail.clone_into(&mut event.detail);
        self.events.push(event);
    }

    pub(super) fn audit(&self, query: &EventQuery) -> EventPage {
        let wanted = (query.limit as usize).saturating_add(1);
        let asked = self.events.iter().filter(|event| query.takes(event));
        let events = if query.oldest_first {
            asked.take(wanted).cloned().collect()
        } else {
            asked.rev().take(wanted).cloned().collect()
        };
        EventPage::of(events, query.limit)
    }
}

impl Oversight for MemoryStore {
    fn record(
        &self,
        incident: Incident,
        letter_id: Option<String>,
        detail: String,
        actor: Actor,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        later(move || {
            let now = self.clock.now();
            let mut state = self.lock();
            let seen = letter_id.and_then(|id| state.letters.values().find(|stored| stored.row.letter_id == id));
            let seen = seen.map(|stored| stored.row.letter_id.clone());
            state.note(incident.as_str(), &actor, &cut_middle(&detail, MAX_ACTOR_REASON), now);
            if let Some(event) = state.events.last_mut() {
                event.letter_id = seen;
            }
            Ok(())
        })
    }
}
