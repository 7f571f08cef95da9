//! `ledger(..)`: one call is one attempt, counted before it runs; a refused call neither parks nor falls back.
#![allow(clippy::unwrap_used, clippy::panic)] // a helper of a test fails as a test does
#![allow(clippy::items_after_statements)] // a function stands where it is tried

use std::cell::Cell;
use std::time::Duration;

use retry_runtime::dead_letter::{DeadLetterStore, Filter, MemoryStore, PageRequest, ReplayScope};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerEntry, LedgerKey, LedgerStatus, LedgerToken};
use retry_runtime::reply::Reply;
use retry_runtime::{Classify, GaveUp, Refused, StopReason, retry};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("come back later")]
    #[classify(retryable, retry_after = 0)]
    Later(Duration),
    #[error("gone")]
    #[classify(gone)]
    Gone,
    #[error("{0}")]
    #[classify(permanent)]
    Refused(#[from] Refused),
}

#[retry(
    max_retries = 1,
    name = "fetch",
    ledger(store = store, key = url, skipped = Ok(None)),
    dead_letter(sink = store, job_id = url),
    fallback = { fell_back.set(fell_back.get() + 1); Err(E::Busy) }
)]
async fn fetch(
    store: &MemoryStore,
    url: &str,
    calls: &Cell<u32>,
    fell_back: &Cell<u32>,
    outcome: Result<Option<u32>, E>,
) -> Result<Option<u32>, E> {
    calls.set(calls.get() + 1);
    outcome.clone()
}

async fn entry(store: &MemoryStore, url: &str) -> LedgerEntry {
    store.entry(LedgerKey::new("fetch", url)).await.unwrap().unwrap()
}

async fn letters(store: &MemoryStore) -> u64 {
    store.count(Filter::default()).await.unwrap()
}

// B3.3, 11.7
#[tokio::test(start_paused = true)]
async fn calls_are_counted_not_attempts_and_the_cap_holds() {
    let (store, calls, fell_back) = (MemoryStore::new(), Cell::new(0), Cell::new(0));
    for call in 1..=3 {
        assert_eq!(fetch(&store, "u", &calls, &fell_back, Err(E::Busy)).await, Err(E::Busy));
        assert_eq!((entry(&store, "u").await.attempts, calls.get()), (call, 2 * call));
    }
    assert_eq!((fell_back.get(), letters(&store).await), (3, 1));
    // refused: the body does not run, nothing falls back, nothing is parked
    let before = store.count(Filter::default()).await.unwrap();
    assert_eq!(fetch(&store, "u", &calls, &fell_back, Err(E::Busy)).await, Ok(None));
    assert_eq!((calls.get(), fell_back.get(), letters(&store).await), (6, 3, before));
    assert_eq!(entry(&store, "u").await.attempts, 3);
}

// 11.7: counted before the first attempt, so a call that never ends counts
#[tokio::test]
async fn a_call_is_counted_before_its_body_runs() {
    #[retry(name = "crash", ledger(store = store, key = "k", skipped = Ok(None)))]
    async fn counted(store: &MemoryStore) -> Result<Option<u32>, E> {
        Ok(store.entry(LedgerKey::new("crash", "k")).await.unwrap().map(|entry| entry.attempts))
    }
    assert_eq!(counted(&MemoryStore::new()).await, Ok(Some(1)));
}

// B3.1, B3.3
#[tokio::test(start_paused = true)]
async fn ok_and_gone_are_never_asked_again() {
    let (store, calls, fell_back) = (MemoryStore::new(), Cell::new(0), Cell::new(0));
    for (url, outcome, status) in [("a", Ok(Some(1)), LedgerStatus::Ok), ("b", Err(E::Gone), LedgerStatus::Gone)] {
        assert_eq!(fetch(&store, url, &calls, &fell_back, outcome.clone()).await, outcome);
        assert_eq!(entry(&store, url).await.status, status);
        let before = calls.get();
        assert_eq!(fetch(&store, url, &calls, &fell_back, outcome).await, Ok(None));
        assert_eq!(calls.get(), before);
    }
    assert_eq!((fell_back.get(), letters(&store).await), (0, 0));
}

// 4.1, D17
#[tokio::test(start_paused = true)]
async fn a_hint_too_long_is_not_due_until_then() {
    let (store, calls, fell_back) = (MemoryStore::new(), Cell::new(0), Cell::new(0));
    #[retry(name = "fetch", ledger(store = store, key = url, skipped = Ok(None)))]
    async fn limited(store: &MemoryStore, url: &str, wait: Duration) -> Result<Option<u32>, E> {
        Err(E::Later(wait))
    }
    assert!(limited(&store, "u", Duration::from_secs(3600)).await.is_err());
    let entry = entry(&store, "u").await;
    assert!(entry.next_at.is_some_and(|at| at > entry.last_seen), "{entry:?}");
    assert_eq!(fetch(&store, "u", &calls, &fell_back, Ok(Some(1))).await, Ok(None));
    assert_eq!(calls.get(), 0);
    // a hint that was obeyed keeps nobody back
    assert!(limited(&store, "v", Duration::from_secs(1)).await.is_err());
    assert_eq!(store.entry(LedgerKey::new("fetch", "v")).await.unwrap().unwrap().next_at, None);
}

// D17, 5.6
#[test]
fn without_skipped_the_refusal_is_the_error() {
    #[retry(name = "once", ledger(store = store, key = key, max_attempts = 1))]
    fn plain(store: &MemoryStore, key: u32) -> Result<(), E> {
        Ok(())
    }
    #[retry(name = "once", ledger(store = store, key = key, max_attempts = 1))]
    fn reported(store: &MemoryStore, key: u32) -> Result<(), GaveUp<E>> {
        Ok(())
    }
    #[retry(name = "other", ledger(store = store, key = key, scope = "once"))]
    fn scoped(store: &MemoryStore, key: u32) -> Result<(), E> {
        Ok(())
    }
    let store = MemoryStore::new();
    assert_eq!(plain(&store, 7), Ok(()));
    let Err(E::Refused(refused)) = plain(&store, 7) else { panic!("called twice") };
    assert_eq!(refused.reason(), StopReason::LedgerRefused);
    assert_eq!(refused.to_string(), "refused (ledger_refused): ledger once/7: already ok");
    let gave_up = reported(&store, 7).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.attempts(), gave_up.last()), (StopReason::LedgerRefused, 0, None));
    let text = gave_up.to_string();
    assert!(text.ends_with(": ledger_refused: ledger once/7: already ok"), "{text}");
    assert!(matches!(scoped(&store, 7), Err(E::Refused(_))));
}

/// A ledger that cannot write.
struct Broken;

impl AttemptLedger for Broken {
    fn begin(&self, _: LedgerKey, _: u32) -> Reply<Result<Begin, StoreError>> {
        Reply::ready(Err(StoreError::new(StoreErrorKind::Full, "disk full")))
    }
    fn end(&self, _: LedgerKey, _: LedgerToken, _: End) -> Reply<Result<bool, StoreError>> {
        panic!("an end without a beginning")
    }
    fn entry(
        &self,
        _: LedgerKey,
    ) -> retry_runtime::dead_letter::BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        Box::pin(async { Ok(None) })
    }
    fn entries(
        &self,
        _: String,
        _: Option<String>,
        _: u32,
    ) -> retry_runtime::dead_letter::BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn reset(
        &self,
        _: LedgerKey,
        _: retry_runtime::dead_letter::Actor,
    ) -> retry_runtime::dead_letter::BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        Box::pin(async { Ok(None) })
    }
}

// B3.6, D17
#[test]
fn a_broken_ledger_never_breaks_the_call_and_the_cap_holds_in_the_process() {
    #[retry(name = "broken-ledger", max_retries = 0, ledger(store = Broken, key = "k", max_attempts = 2, skipped = Ok(0)))]
    fn f(calls: &Cell<u32>) -> Result<u32, E> {
        calls.set(calls.get() + 1);
        Err(E::Busy)
    }
    let calls = Cell::new(0);
    assert_eq!([f(&calls), f(&calls), f(&calls)], [Err(E::Busy), Err(E::Busy), Ok(0)]);
    assert_eq!(calls.get(), 2);
}

// D4
#[tokio::test(start_paused = true)]
async fn inside_a_replay_of_the_job_ledger_and_sink_stand_aside() {
    let (store, calls, fell_back) = (MemoryStore::new(), Cell::new(0), Cell::new(0));
    for _ in 0..3 {
        assert!(fetch(&store, "u", &calls, &fell_back, Err(E::Busy)).await.is_err());
    }
    let page = store.list(Filter::default(), PageRequest::default()).await.unwrap();
    let row = &page.rows[0];
    let runs = calls.get();
    let outcome = ReplayScope::of(row).run(fetch(&store, "u", &calls, &fell_back, Err(E::Busy))).await;
    // at the cap, and yet it ran: the replay has its own allowance; and nothing was parked beside it
    assert_eq!((outcome, calls.get()), (Err(E::Busy), runs + 2));
    assert_eq!(entry(&store, "u").await.attempts, 3);
    let after = store.list(Filter::default(), PageRequest::default()).await.unwrap();
    assert_eq!((after.rows.len(), after.rows[0].attempts), (1, row.attempts));
}
