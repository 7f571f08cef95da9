//! Ledger and counters over the store's two threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use retry_runtime::counters::{DailyCounters, Day, MAX_COUNT, Threshold, Thresholds};
use retry_runtime::dead_letter::{Actor, BoxFuture};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::ledger::{
    AttemptLedger, Begin, End, LedgerBooks, LedgerCounts, LedgerEntry, LedgerKey, LedgerPage, LedgerQuery, LedgerToken,
};
use retry_runtime::reply::Reply;

use super::verbs::later;
use super::{SqliteStore, closed};
use crate::config::Access;
use crate::worker::counts::Key;
use crate::{counters, ledger, rows};

impl AttemptLedger for SqliteStore {
    fn begin(&self, key: LedgerKey, max_attempts: u32) -> Reply<Result<Begin, StoreError>> {
        self.handle.change("count an attempt", move |tx| ledger::begin(tx, &key, max_attempts).map(Ok), |_, _| ())
    }

    fn end(&self, key: LedgerKey, token: LedgerToken, end: End) -> Reply<Result<bool, StoreError>> {
        self.handle.change("write how an attempt ended", move |tx| ledger::end(tx, &key, token, end).map(Ok), |_, _| ())
    }

    fn entry(&self, key: LedgerKey) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        later(move || self.handle.reader.ask("read the ledger", move |c| ledger::find(c, &key)))
    }

    fn entries(
        &self,
        scope: String,
        after: Option<String>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        later(move || {
            self.handle.reader.ask("read the ledger", move |c| ledger::page(c, &scope, after.as_deref(), limit))
        })
    }

    fn reset(&self, key: LedgerKey, actor: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        later(move || {
            self.handle.change(
                "reset a key",
                move |tx| {
                    let before = ledger::find(tx.connection, &key)?;
                    let reset = ledger::reset(tx, &key)?;
                    if let Some(before) = before {
                        let detail =
                            format!("{key}: was {} after {} attempts", before.status.as_str(), before.attempts);
                        rows::event(tx, None, "ledger_reset", Some(&actor), (None, None), &detail)?;
                    }
                    Ok(Ok(reset))
                },
                |_, _| (),
            )
        })
    }
}

impl LedgerBooks for SqliteStore {
    fn page(&self, query: LedgerQuery) -> BoxFuture<'_, Result<LedgerPage, StoreError>> {
        later(move || {
            self.handle
                .reader
                .ask("read the ledger", move |c| Ok(LedgerPage::of(ledger::matching(c, &query)?, query.limit)))
        })
    }

    fn counts(&self, scope: String) -> BoxFuture<'_, Result<LedgerCounts, StoreError>> {
        later(move || self.handle.reader.ask("count the ledger", move |c| ledger::counts(c, &scope)))
    }

    fn scopes(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        later(move || self.handle.reader.ask("read the ledger", ledger::scopes))
    }
}

impl DailyCounters for SqliteStore {
    fn add(&self, operation: &str, counter: &str, n: u64) -> Reply<Result<(), StoreError>> {
        if let Some(refused) = self.read_only() {
            return Reply::ready(Err(refused));
        }
        let (answer, reply) = Reply::pair(|| Err(closed()));
        let key = (self.today(), operation.to_owned(), counter.to_owned());
        // A closed store drops the answer, which says so.
        let _refused = self.handle.shared.queue.count(key, n, answer, self.handle.settings.flush_counters_every);
        reply
    }

    fn flush(&self) -> Reply<Result<(), StoreError>> {
        let (answer, reply) = Reply::pair(|| Err(closed()));
        let _refused = self.handle.shared.queue.flush_counts(answer);
        reply
    }

    fn today(&self) -> Day {
        Day::of(self.handle.clock.now())
    }

    fn day(&self, operation: String, day: Day) -> BoxFuture<'_, Result<BTreeMap<String, u64>, StoreError>> {
        later(move || {
            let shared = Arc::clone(&self.handle.shared);
            self.handle.reader.ask("read counters", move |c| {
                let _still = shared.counts_are_moving();
                let mut values = counters::day(c, &operation, day)?;
                shared.queue.counted(|counts| {
                    for ((_, _, counter), n) in of_operation(counts, &operation).filter(|((on, _, _), _)| *on == day) {
                        sum(values.entry(counter.clone()).or_default(), *n);
                    }
                });
                Ok(values)
            })
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
            let shared = Arc::clone(&self.handle.shared);
            self.handle.reader.ask("read counters", move |c| {
                let _still = shared.counts_are_moving();
                let mut values = counters::series(c, &operation, &counter, from, to)?;
                shared.queue.counted(|counts| {
                    for ((on, _, _), n) in of_operation(counts, &operation).filter(|((_, _, of), _)| *of == counter) {
                        if let Some((_, value)) = values.iter_mut().find(|(day, _)| day == on) {
                            sum(value, *n);
                        }
                    }
                });
                Ok(values)
            })
        })
    }
}

impl SqliteStore {
    fn read_only(&self) -> Option<StoreError> {
        (self.handle.settings.access == Access::Read).then(|| {
            let message = format!("`{}` was opened for reading", self.handle.path.display());
            StoreError::new(StoreErrorKind::ReadOnly, message)
        })
    }
}

fn of_operation<'a>(counts: &'a BTreeMap<Key, u64>, operation: &'a str) -> impl Iterator<Item = (&'a Key, &'a u64)> {
    counts.iter().filter(move |((_, of, _), _)| of == operation)
}

fn sum(value: &mut u64, n: u64) {
    *value = value.saturating_add(n).min(MAX_COUNT);
}

impl Thresholds for SqliteStore {
    fn set_threshold(
        &self,
        operation: String,
        counter: String,
        above: u64,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Threshold, StoreError>> {
        later(move || {
            self.handle.change(
                "set a threshold",
                move |tx| {
                    let threshold = match Threshold::new(&operation, &counter, above, &actor, tx.now) {
                        Ok(threshold) => threshold,
                        Err(invalid) => return Ok(Err(invalid)),
                    };
                    counters::set_threshold(tx, &threshold)?;
                    let detail = format!("{operation}/{counter} above {above}");
                    rows::event(tx, None, "threshold_set", Some(&actor), (None, None), &detail)?;
                    Ok(Ok(threshold))
                },
                |_, _| (),
            )
        })
    }

    fn remove_threshold(
        &self,
        operation: String,
        counter: String,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Option<Threshold>, StoreError>> {
        later(move || {
            self.handle.change(
                "remove a threshold",
                move |tx| {
                    let removed = counters::remove_threshold(tx, &operation, &counter)?;
                    if let Some(removed) = &removed {
                        let detail = format!("{operation}/{counter} above {}", removed.above);
                        rows::event(tx, None, "threshold_removed", Some(&actor), (None, None), &detail)?;
                    }
                    Ok(Ok(removed))
                },
                |_, _| (),
            )
        })
    }

    fn thresholds(&self) -> BoxFuture<'_, Result<Vec<Threshold>, StoreError>> {
        later(move || self.handle.reader.ask("read thresholds", counters::thresholds))
    }

    fn counters(&self, from: Day, to: Day) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>> {
        later(move || {
            let shared = Arc::clone(&self.handle.shared);
            self.handle.reader.ask("read counters", move |c| {
                let _still = shared.counts_are_moving();
                let mut names: BTreeSet<_> = counters::names(c, from, to)?.into_iter().collect();
                shared.queue.counted(|counts| {
                    let of_days = counts.keys().filter(|(day, _, _)| (from..=to).contains(day));
                    names.extend(of_days.map(|(_, operation, counter)| (operation.clone(), counter.clone())));
                });
                Ok(names.into_iter().collect())
            })
        })
    }
}
