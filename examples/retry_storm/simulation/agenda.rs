//! What happens next.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

/// Events in the order of their times; those of one time in the order they were planned in.
pub(super) struct Agenda<E> {
    now: Duration,
    planned: u64,
    events: BinaryHeap<Reverse<Entry<E>>>,
}

struct Entry<E> {
    at: Duration,
    number: u64,
    event: E,
}

impl<E> Agenda<E> {
    pub(super) fn new() -> Self {
        Self { now: Duration::ZERO, planned: 0, events: BinaryHeap::new() }
    }

    /// Since the start.
    pub(super) fn now(&self) -> Duration {
        self.now
    }

    pub(super) fn plan(&mut self, after: Duration, event: E) {
        self.planned += 1;
        self.events.push(Reverse(Entry { at: self.now + after, number: self.planned, event }));
    }

    /// The next event; it is its time now.
    pub(super) fn next(&mut self) -> Option<E> {
        let Reverse(entry) = self.events.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }
}

impl<E> Entry<E> {
    fn key(&self) -> (Duration, u64) {
        (self.at, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
