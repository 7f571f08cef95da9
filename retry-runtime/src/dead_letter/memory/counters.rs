//! The daily counters of the store in memory.

use std::collections::{BTreeMap, BTreeSet};

use super::{MemoryStore, later};
use crate::counters::{DailyCounters, Day, MAX_COUNT, Threshold, Thresholds};
use crate::dead_letter::{Actor, BoxFuture};
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

impl Thresholds for MemoryStore {
    fn set_threshold(
        &self,
        operation: String,
        counter: String,
        above: u64,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Threshold, StoreError>> {
        later(move || {
            let threshold = Threshold::new(operation, counter, above, &actor, self.clock.now())?;
            let key = (threshold.operation.clone(), threshold.counter.clone());
            self.lock().thresholds.insert(key, threshold.clone());
            Ok(threshold)
        })
    }

    fn remove_threshold(
        &self,
        operation: String,
        counter: String,
        _actor: Actor,
    ) -> BoxFuture<'_, Result<Option<Threshold>, StoreError>> {
        later(move || Ok(self.lock().thresholds.remove(&(operation, counter))))
    }

    fn thresholds(&self) -> BoxFuture<'_, Result<Vec<Threshold>, StoreError>> {
        later(move || Ok(self.lock().thresholds.values().cloned().collect()))
    }

    fn counters(&self, from: Day, to: Day) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>> {
        later(move || {
            let state = self.lock();
            let of_days = state.daily.keys().filter(|(_, day, _)| (from..=to).contains(day));
            let names: BTreeSet<_> =
                of_days.map(|(operation, _, counter)| (operation.clone(), counter.clone())).collect();
            Ok(names.into_iter().collect())
        })
    }
}
