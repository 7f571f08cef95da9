//! Counts on their way to the file: summed up in memory, written once an interval.
//!
//! Many additions become one row. What is not written yet is added to every answer of this store, and whatever cannot be
//! written stays here and is tried again.

use std::collections::BTreeMap;
use std::time::Instant;

use retry_runtime::counters::{Day, MAX_COUNT};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::observe::Notice;
use retry_runtime::reply::Answer;

use super::{Worker, batch};
use crate::counters;

/// Day, operation and counter.
pub(crate) type Key = (Day, String, String);

/// What was counted and is not in the file.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) values: BTreeMap<Key, u64>,
    pub(crate) answers: Vec<Answer<Result<(), StoreError>>>,
    /// When it is to be written, in real time.
    pub(crate) due: Option<Instant>,
}

impl Counts {
    pub(crate) fn add(&mut self, key: Key, n: u64) {
        let value = self.values.entry(key).or_default();
        *value = value.saturating_add(n).min(MAX_COUNT);
    }

    /// To be written at that time, or before.
    pub(crate) fn write_by(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }
}

impl Worker {
    /// Writes what was counted. What cannot be written is kept, and whoever waits hears why.
    pub(super) fn write_counts(&mut self) {
        let shared = std::sync::Arc::clone(&self.shared);
        // No reader may see the file and the memory from the two sides of this.
        let _moving = shared.counts_are_moving();
        let Counts { values, answers, .. } = shared.queue.take_counts();
        let result = if values.is_empty() { Ok(()) } else { self.write_values(&values) };
        match &result {
            Ok(()) => {}
            // Written perhaps: once more could count twice.
            Err(error) if error.kind() == StoreErrorKind::Unknown => say_lost(&values, error),
            Err(_) => shared.queue.put_counts_back(values, self.settings.flush_counters_every),
        }
        for answer in answers {
            answer.send(result.as_ref().copied().map_err(batch::again));
        }
    }

    fn write_values(&mut self, values: &BTreeMap<Key, u64>) -> Result<(), StoreError> {
        self.check_link()?;
        let mut outcome = self.small_batch(self.now, 1, |_, tx| {
            values.iter().try_for_each(|((day, operation, counter), n)| counters::add(tx, *day, operation, counter, *n))
        });
        self.log_in_use = true;
        self.note(outcome.broken.as_ref());
        outcome.each.pop().unwrap_or(Ok(()))
    }

    /// The last try, at the end. What is left then is lost with the process, and said.
    pub(super) fn write_last_counts(&mut self) {
        self.write_counts();
        let left = self.shared.queue.take_counts();
        if !left.values.is_empty() {
            let why = self.outage.because().map_or_else(closing, batch::again);
            say_lost(&left.values, &why);
        }
    }
}

fn closing() -> StoreError {
    StoreError::new(StoreErrorKind::Closed, "the store was closed")
}

fn say_lost(values: &BTreeMap<Key, u64>, because: &StoreError) {
    let mut of: Vec<_> =
        values.iter().map(|((day, operation, counter), n)| format!("{operation}/{counter} {n} on {day}")).collect();
    let more = of.len().saturating_sub(10);
    of.truncate(10);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("counts were perhaps not written: {}{more}: {because}", of.join(", "));
    Notice::error("counts_lost", "", message).say();
}
