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
        let mut event = self.event(what, actor, detail, now);
        // A live failure meanwhile is not the operation's doing.
        event.operation = self.operations.of_letter(row.seq).filter(|_| what != "parked").cloned();
        event.letter_id = Some(row.letter_id.clone());
        (event.before, event.after) = (before, Some(row.state));
        self.events.push(event);
    }

    /// Writes down what happened to the store.
    pub(super) fn note(&mut self, what: &str, actor: &Actor, detail: &str, now: SystemTime) {
        let event = self.event(what, actor, detail, now);
        self.events.push(event);
    }

    /// The next event, before it is written down: whole when it is.
    pub(super) fn event(&self, what: &str, actor: &Actor, detail: &str, now: SystemTime) -> EventRecord {
        let Actor { name, reason } = actor.bounded();
        // Those of deleted letters go; a number is used once all the same, as each deletion is noted after them.
        let id = self.events.last().map_or(1, |last| last.id + 1);
        let mut event = EventRecord::new(id, crate::dead_letter::whole_millis(now), what);
        (event.actor, event.reason) = (Some(name), Some(reason));
        detail.clone_into(&mut event.detail);
        event
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
            let mut event = state.event(incident.as_str(), &actor, &cut_middle(&detail, MAX_ACTOR_REASON), now);
            // A letter that is not there is no error: it happened to the store.
            event.letter_id = letter_id.filter(|id| state.letters.values().any(|stored| stored.row.letter_id == *id));
            state.events.push(event);
            Ok(())
        })
    }
}
