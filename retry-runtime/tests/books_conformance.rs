//! The checks of counters, thresholds and ledger pages: stores with one fault each do not pass them.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use retry_runtime::counters::{DailyCounters, Day, Degraded, Threshold, Thresholds};
use retry_runtime::dead_letter::{Actor, BoxFuture, MemoryStore, StoreClock};
use retry_runtime::error::StoreError;
use retry_runtime::ledger::{
    AttemptLedger, Begin, End, LedgerBooks, LedgerCounts, LedgerEntry, LedgerKey, LedgerPage, LedgerQuery, LedgerToken,
};
use retry_runtime::reply::Reply;
use retry_runtime::testing::conformance::{self, Report};

type Result<T, E = StoreError> = std::result::Result<T, E>;

#[test]
fn the_store_in_memory_passes() {
    conformance::counters(MemoryStore::with_clock).assert_passed();
    conformance::thresholds(MemoryStore::with_clock).assert_passed();
    conformance::books(MemoryStore::with_clock).assert_passed();
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    UnwrittenUnseen,
    UnwrittenOfTheFlushDay,
    RecentForgetsToday,
    DegradedAtTheThreshold,
    DegradedForEver,
    ThresholdStaysWhereItWas,
    ThresholdNeverGone,
    StatusIgnored,
    CapIgnored,
    PageBehindTheCursorOverlaps,
    NextOnTheLastPage,
    CountsOfEveryScope,
}

/// The store in memory with one fault.
struct Faulty {
    inner: MemoryStore,
    fault: Fault,
    unwritten: Mutex<Vec<(String, String, u64)>>,
}

impl Faulty {
    fn new(fault: Fault, clock: StoreClock) -> Self {
        Self { inner: MemoryStore::with_clock(clock), fault, unwritten: Mutex::default() }
    }
}

impl DailyCounters for Faulty {
    fn add(&self, operation: &str, counter: &str, n: u64) -> Reply<Result<()>> {
        if matches!(self.fault, Fault::UnwrittenUnseen | Fault::UnwrittenOfTheFlushDay) {
            let mut unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
            unwritten.push((operation.to_owned(), counter.to_owned(), n));
            return Reply::ready(Ok(()));
        }
        self.inner.add(operation, counter, n)
    }

    fn flush(&self) -> Reply<Result<()>> {
        // The fault of days writes a lone count at the flush after the next one.
        let mut unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = usize::from(self.fault == Fault::UnwrittenOfTheFlushDay && unwritten.len() == 1);
        for (operation, counter, n) in unwritten.drain(kept..) {
            drop(self.inner.add(&operation, &counter, n));
        }
        Reply::ready(Ok(()))
    }

    fn today(&self) -> Day {
        self.inner.today()
    }

    fn day(&self, operation: String, day: Day) -> BoxFuture<'_, Result<BTreeMap<String, u64>>> {
        self.inner.day(operation, day)
    }

    fn series(&self, operation: String, counter: String, from: Day, to: Day) -> BoxFuture<'_, Result<Vec<(Day, u64)>>> {
        self.inner.series(operation, counter, from, to)
    }

    fn recent(&self, operation: String, counter: String, days: u32) -> BoxFuture<'_, Result<Vec<(Day, u64)>>> {
        if self.fault == Fault::RecentForgetsToday {
            let last = self.today().plus(-1);
            return self.inner.series(operation, counter, last.plus(1 - i64::from(days)), last);
        }
        self.inner.recent(operation, counter, days)
    }
}

impl Thresholds for Faulty {
    fn set_threshold(
        &self,
        operation: String,
        counter: String,
        above: u64,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Threshold>> {
        Box::pin(async move {
            let known = self.inner.thresholds().await?;
            let known = known.into_iter().find(|known| (&known.operation, &known.counter) == (&operation, &counter));
            match known {
                Some(known) if self.fault == Fault::ThresholdStaysWhereItWas => Ok(known),
                _ => self.inner.set_threshold(operation, counter, above, actor).await,
            }
        })
    }

    fn remove_threshold(
        &self,
        operation: String,
        counter: String,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Option<Threshold>>> {
        if self.fault == Fault::ThresholdNeverGone {
            return Box::pin(async move {
                let known = self.inner.thresholds().await?;
                Ok(known.into_iter().find(|known| (&known.operation, &known.counter) == (&operation, &counter)))
            });
        }
        self.inner.remove_threshold(operation, counter, actor)
    }

    fn thresholds(&self) -> BoxFuture<'_, Result<Vec<Threshold>>> {
        self.inner.thresholds()
    }

    fn counters(&self, from: Day, to: Day) -> BoxFuture<'_, Result<Vec<(String, String)>>> {
        self.inner.counters(from, to)
    }

    fn degraded(&self, day: Day) -> BoxFuture<'_, Result<Vec<Degraded>>> {
        Box::pin(async move {
            match self.fault {
                // One more of each makes more out of "at".
                Fault::DegradedAtTheThreshold => {
                    let shadow = MemoryStore::new();
                    for Threshold { operation, counter, above, .. } in self.inner.thresholds().await? {
                        let value = self.inner.day(operation.clone(), day).await?.get(&counter).copied().unwrap_or(0);
                        let above = above.saturating_sub(u64::from(value == above));
                        let me = Actor::new("me", "");
                        shadow.set_threshold(operation.clone(), counter.clone(), above, me).await?;
                        drop(shadow.add(&operation, &counter, value));
                    }
                    shadow.degraded(shadow.today()).await
                }
                Fault::DegradedForEver => self.inner.degraded(self.today()).await,
                _ => self.inner.degraded(day).await,
            }
        })
    }
}

impl AttemptLedger for Faulty {
    fn begin(&self, key: LedgerKey, max_attempts: u32) -> Reply<Result<Begin>> {
        self.inner.begin(key, max_attempts)
    }

    fn end(&self, key: LedgerKey, token: LedgerToken, end: End) -> Reply<Result<bool>> {
        self.inner.end(key, token, end)
    }

    fn entry(&self, key: LedgerKey) -> BoxFuture<'_, Result<Option<LedgerEntry>>> {
        self.inner.entry(key)
    }

    fn entries(&self, scope: String, after: Option<String>, limit: u32) -> BoxFuture<'_, Result<Vec<LedgerEntry>>> {
        self.inner.entries(scope, after, limit)
    }

    fn reset(&self, key: LedgerKey, actor: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>>> {
        self.inner.reset(key, actor)
    }
}

impl LedgerBooks for Faulty {
    fn page(&self, mut query: LedgerQuery) -> BoxFuture<'_, Result<LedgerPage>> {
        Box::pin(async move {
            match self.fault {
                Fault::StatusIgnored => query.status = None,
                Fault::CapIgnored => query.attempts_at_least = 0,
                // Behind the letter before it: the last one is shown again.
                Fault::PageBehindTheCursorOverlaps => query.after = query.after.map(|after| one_less(&after)),
                _ => {}
            }
            let mut page = self.inner.page(query).await?;
            if self.fault == Fault::NextOnTheLastPage {
                page.next = page.entries.last().map(|last| last.key.key.clone());
            }
            Ok(page)
        })
    }

    fn counts(&self, scope: String) -> BoxFuture<'_, Result<LedgerCounts>> {
        Box::pin(async move {
            let mut counts = self.inner.counts(scope.clone()).await?;
            if self.fault == Fault::CountsOfEveryScope {
                for other in self.inner.scopes().await?.into_iter().filter(|other| *other != scope) {
                    let of_other = self.inner.counts(other).await?;
                    counts.open += of_other.open;
                }
            }
            Ok(counts)
        })
    }

    fn scopes(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        self.inner.scopes()
    }
}

/// The text just before this one.
fn one_less(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    match bytes.last_mut() {
        Some(last) if *last > b' ' => *last -= 1,
        _ => {}
    }
    String::from_utf8(bytes).unwrap()
}

fn caught(report: &Report, fault: Fault, by: &str) {
    assert!(report.failures().any(|failed| failed.name == by), "{fault:?} was not caught by {by}\n{report}");
}

#[test]
fn each_planted_fault_of_counters_is_caught() {
    for (fault, by) in [
        (Fault::UnwrittenUnseen, "a_count_is_seen_before_it_is_written"),
        (Fault::UnwrittenOfTheFlushDay, "a_day_ends_at_midnight_utc"),
        (Fault::RecentForgetsToday, "the_last_days_end_today"),
    ] {
        caught(&conformance::counters(|clock| Faulty::new(fault, clock)), fault, by);
    }
}

#[test]
fn each_planted_fault_of_thresholds_is_caught() {
    for (fault, by) in [
        (Fault::DegradedAtTheThreshold, "only_more_than_the_threshold_is_degraded"),
        (Fault::DegradedForEver, "each_day_is_judged_by_itself"),
        (Fault::ThresholdStaysWhereItWas, "a_threshold_is_moved_and_taken_away"),
        (Fault::ThresholdNeverGone, "a_threshold_is_moved_and_taken_away"),
        (Fault::UnwrittenUnseen, "counters_that_are_known_are_listed"),
    ] {
        caught(&conformance::thresholds(|clock| Faulty::new(fault, clock)), fault, by);
    }
}

#[test]
fn each_planted_fault_of_books_is_caught() {
    for (fault, by) in [
        (Fault::StatusIgnored, "pages_of_a_status_show_each_key_once"),
        (Fault::PageBehindTheCursorOverlaps, "pages_of_a_status_show_each_key_once"),
        (Fault::NextOnTheLastPage, "pages_of_a_status_show_each_key_once"),
        (Fault::CapIgnored, "keys_at_their_cap_are_found"),
        (Fault::CountsOfEveryScope, "counts_add_up_to_all_keys"),
    ] {
        caught(&conformance::books(|clock| Faulty::new(fault, clock)), fault, by);
    }
}
