//! The audit: what happened to letters and to the store, by whom and why.

use std::time::SystemTime;

use crate::dead_letter::LetterState;

/// One thing that happened. Written in the same transaction as the change, and never changed.
///
/// | `what` | of a letter: what happened |
/// |---|---|
/// | `parked` | it was parked, or parked again (`reason`: why the call ended) |
/// | `reopened` | it was closed, and its job failed again |
/// | `claimed` | a replay took it (`detail`: who replays) |
/// | `replayed` | a replay gave a result (`detail`: `recovered`, `gone`, or why it failed) |
/// | `late_result` | a result came after its lease had gone: recorded, and without effect |
/// | `late_end` | a job that was parked as crashed ended after all, in the process that was taken for dead |
/// | `late_failure` | the same, and it failed: its own letter has taken the place of the one that was parked as crashed |
/// | `lease_expired` | a replay died |
/// | `released` | a replay was given up without a result (`detail`: `held`, or `forced` by an operator) |
/// | `restored`, `discarded`, `resolved` | an operator did it |
/// | `edited` | an operator gave it another payload (`detail`: which revision, from which) |
/// | `erased` | not of a letter: everything of a job was erased (`detail`: a hash of its key) |
/// | `imported` | it was joined with the letter of the same job out of an export (`detail`: whether that opened it again) |
/// | `pruned` | not of a letter: closed letters were deleted, with their events (`detail`: how many) |
/// | `salvaged` | not of a letter: what could be read of a damaged store came into this one (`detail`: how much, and from where) |
/// | `ledger_reset` | not of a letter: a key of the attempt ledger was opened again (`detail`: which) |
/// | `threshold_set`, `threshold_removed` | not of a letter: a threshold of a daily counter (`detail`: which, and its value) |
/// | `payload_shown` | somebody saw its payload (`detail`: how, and which revision) |
/// | `refused` | of a letter or the store: somebody wanted to change something and may not (`detail`: what, and why) |
/// | `logged_in`, `login_refused` | not of a letter: somebody came to the dashboard, or was not let in (`detail`: from where) |
/// | `operation_started` | of a bulk operation: its members were frozen (`detail`: its verb, and how many) |
/// | `operation_running` | a runner took it (`detail`: who) |
/// | `operation_paused`, `operation_failed` | it stopped (`detail`: its note, which says why) |
/// | `operation_pending` | it waits for a runner again |
/// | `operation_done`, `operation_cancelled` | it is over |
///
/// Every word of this version is here. Other words come from later versions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventRecord {
    /// Its number; later events have higher ones.
    pub id: u64,
    /// When.
    pub at: SystemTime,
    /// What: a word of the table above.
    pub what: String,
    /// The letter it happened to; `None` for what happened to the store.
    pub letter_id: Option<String>,
    /// Who did it: an operator, a replayer, or the program that parked.
    pub actor: Option<String>,
    /// Why they did it.
    pub reason: Option<String>,
    /// The bulk operation it was part of.
    pub operation: Option<String>,
    /// The letter's state before; `None` when there was none.
    pub before: Option<LetterState>,
    /// The letter's state after.
    pub after: Option<LetterState>,
    /// What else is to be said; may be empty.
    pub detail: String,
}

impl EventRecord {
    /// An event with nothing but a number, a time and a word; for stores, which fill in the rest.
    pub fn new(id: u64, at: SystemTime, what: impl Into<String>) -> Self {
        Self {
            id,
            at,
            what: what.into(),
            letter_id: None,
            actor: None,
            reason: None,
            operation: None,
            before: None,
            after: None,
            detail: String::new(),
        }
    }
}

/// What events are asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventsOf {
    /// Everything.
    #[default]
    All,
    /// One letter, by its id.
    Letter(String),
    /// One bulk operation, by its id.
    Operation(String),
}

/// Which page of the audit is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventQuery {
    /// About what.
    pub of: EventsOf,
    /// The oldest event first; the newest by default.
    pub oldest_first: bool,
    /// At most so many; 50 by default.
    pub limit: u32,
    /// Behind the event with this number, where the page before ended; `None` for the first page.
    pub after: Option<u64>,
}

impl EventQuery {
    /// The newest events of everything.
    pub fn all() -> Self {
        Self { of: EventsOf::All, oldest_first: false, limit: 50, after: None }
    }

    /// The newest events of one letter.
    pub fn letter(letter_id: impl Into<String>) -> Self {
        Self { of: EventsOf::Letter(letter_id.into()), ..Self::all() }
    }

    /// The newest events of one bulk operation.
    pub fn operation(operation: impl Into<String>) -> Self {
        Self { of: EventsOf::Operation(operation.into()), ..Self::all() }
    }

    /// The oldest event first.
    #[must_use]
    pub fn oldest_first(mut self) -> Self {
        self.oldest_first = true;
        self
    }

    /// At most so many.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// The page that starts after the event with this number.
    #[must_use]
    pub fn after(mut self, event: Option<u64>) -> Self {
        self.after = event;
        self
    }

    /// Whether an event is asked about, and lies behind the page before: the meaning a store's own query must have.
    pub fn takes(&self, event: &EventRecord) -> bool {
        let of = match &self.of {
            EventsOf::All => true,
            EventsOf::Letter(letter_id) => event.letter_id.as_ref() == Some(letter_id),
            EventsOf::Operation(operation) => event.operation.as_ref() == Some(operation),
        };
        of && self.after.is_none_or(|after| if self.oldest_first { event.id > after } else { event.id < after })
    }
}

impl Default for EventQuery {
    fn default() -> Self {
        Self::all()
    }
}

/// One page of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventPage {
    /// The events.
    pub events: Vec<EventRecord>,
    /// Where the next page starts; `None` when this is the last one.
    pub next: Option<u64>,
}

impl EventPage {
    /// The page of `events`, which may hold one more than `limit`: that one says that there is a next page.
    pub fn of(mut events: Vec<EventRecord>, limit: u32) -> Self {
        let limit = limit as usize;
        let more = events.len() > limit;
        events.truncate(limit);
        let next = if more { events.last().map(|event| event.id) } else { None };
        Self { events, next }
    }
}
