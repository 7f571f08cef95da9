//! The leases this process answers for, extended by the store's own thread: a handler that blocks keeps its lease.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::JobEnd;
use retry_runtime::id::Id;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) fence: u64,
    pub(crate) length: Duration,
    due: SystemTime,
}

/// Leases by letter id.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    held: HashMap<String, Lease>,
    /// When this process is next to say that it lives, while it has jobs in the journal.
    own: Option<SystemTime>,
    /// Jobs that have ended, and stand in the journal because the store failed.
    pub(crate) unstruck: Vec<(Id, JobEnd)>,
}

impl Leases {
    /// From now on extended at every third of its length.
    pub(crate) fn hold(&mut self, letter_id: String, fence: u64, length: Duration, now: SystemTime) {
        self.held.insert(letter_id, Lease { fence, length, due: now + length / 3 });
    }

    /// No longer this process's. A lease with another fence stays.
    pub(crate) fn drop_held(&mut self, letter_id: &str, fence: u64) {
        if self.held.get(letter_id).is_some_and(|lease| lease.fence == fence) {
            self.held.remove(letter_id);
        }
    }

    /// When the next extension is due.
    pub(crate) fn next(&self) -> Option<SystemTime> {
        self.held.values().map(|lease| lease.due).chain(self.own).min()
    }

    /// This process has jobs in the journal, and has just said that it lives.
    pub(crate) fn own(&mut self, now: SystemTime, lease: Duration) {
        self.own = Some(now + lease / 3);
    }

    /// Whether it has.
    pub(crate) fn is_owner(&self) -> bool {
        self.own.is_some()
    }

    /// Whether it is to say so again.
    pub(crate) fn own_is_due(&self, now: SystemTime) -> bool {
        self.own.is_some_and(|due| due <= now)
    }

    /// It has none any more.
    pub(crate) fn own_nothing(&mut self) {
        self.own = None;
    }

    /// Those to be extended now; each is due again after a third of its length.
    pub(crate) fn take_due(&mut self, now: SystemTime) -> Vec<(String, Lease)> {
        let mut due = Vec::new();
        for (letter_id, lease) in &mut self.held {
            if lease.due <= now {
                lease.due = now + lease.length / 3;
                due.push((letter_id.clone(), *lease));
            }
        }
        due
    }

    /// All of them, for an orderly end.
    pub(crate) fn take_all(&mut self) -> Vec<(String, Lease)> {
        self.held.drain().collect()
    }
}
