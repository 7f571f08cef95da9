//! The daily counters of the store in memory.

use std::collections::BTreeMap;

use super::{MemoryStore, later};
use crate::counters::{DailyCounters, Day, MAX_COUNT};
use crate::dead_letter::BoxFuture;
use crate::error::StoreError;
use crate::reply::Reply;

impl DailyCounters for MemoryStore {
    fn add(&self, operation: &str, counter: &str, n: u64) -> Reply<Result<(), StoreError>> {
        let key = (operation.to_owned(), self.today(), counter.to_owned());
        let mut state = self.lock();
        let value = state.daily.entry(key).or_default();
        *value = value.saturating_add(n).min(MAX_COUNT);
        Reply::ready(Ok(()))
    }

    fn today(&self) -> Day {
        Day::of(self.clock.now())
    }

    fn day(&self, operation: String, day: Day) -> BoxFuture<'_, Result<BTreeMap<String, u64>, StoreError>> {
        later(move || {
            let state = self.lock();
            let of_day = state.daily.iter().filter(|((of, on, _), _)| *of == operation && *on == day);
            Ok(of_day.map(|((_, _, counter), n)| (counter.clone(), *n)).collect())
        })
    }

    fn series(
        &self,
        operation: String,
        counter: String,
        from: Day,
        to: Day,
    ) -> BoxFuture<'_, Result<Vec<(Day, u64)>, StoreError>> {
        later(move || {
            let state = self.lock();
            let value = |day| state.daily.get(&(operation.clone(), day, counter.clone())).copied().unwrap_or(0);
            Ok(from.through(to).map(|day| (day, value(day))).collect())
        })
    }
}
