//! `dead_letter(.., journal)` from the outside (SEMANTICS 11.4, STORE D14).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use retry_runtime::dead_letter::{
    Actor, BoxFuture, DeadLetter, DeadLetterSink, DeadLetterStore, Filter, JobEnd, JobJournal, JournalCounts,
    LetterRow, LetterState, ManualClock, MemoryStore, OWNER_LEASE, PageRequest, ReplayJob, Replayer, Struck, Ticket,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::id::Id;
use retry_runtime::observe::set_listener;
use retry_runtime::reply::Reply;
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{Classify, GaveUp, Refused, StopReason, retry, retrying};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("gone")]
    #[classify(gone)]
    Gone,
    #[error(transparent)]
    #[classify(transparent)]
    Refused(#[from] Refused),
}

fn rows(store: &MemoryStore) -> Vec<LetterRow> {
    store.list(Filter::all(), PageRequest::default()).now_or_never().unwrap().unwrap().rows
}

fn under_way(store: &MemoryStore) -> u64 {
    store.journalled().now_or_never().unwrap().unwrap().running
}

#[retry(name = "job", max_retries = 1, dead_letter(sink = store, job_id = 7, payload = 7, journal))]
fn blocking(store: &MemoryStore, outcome: &Result<u32, E>) -> Result<u32, E> {
    assert_eq!(under_way(store), 1, "it is written down before it begins, and as long as it runs");
    outcome.clone()
}

#[retry(name = "job", max_retries = 1, dead_letter(sink = store, job_id = 7, payload = 7, journal))]
async fn asynchronous(store: &MemoryStore, outcome: &Result<u32, E>) -> Result<u32, E> {
    assert_eq!(under_way(store), 1);
    outcome.clone()
}

fn paused<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(future)
}

type Face = fn(&MemoryStore, &Result<u32, E>) -> Result<u32, E>;

const FACES: &[(&str, Face)] = &[
    ("blocking", |store, outcome| blocking(store, outcome)),
    ("async", |store, outcome| paused(asynchronous(store, outcome))),
    ("retrying", |store, outcome| {
        paused(async {
            retrying!(name = "job", max_retries = 1, dead_letter(sink = store, job_id = 7, payload = 7, journal);
                async -> Result<u32, E> { assert_eq!(under_way(store), 1); outcome.clone() })
        })
    }),
    ("retrying, blocking", |store, outcome| {
        retrying!(name = "job", max_retries = 1, dead_letter(sink = store, job_id = 7, payload = 7, journal = required);
            -> Result<u32, E> { assert_eq!(under_way(store), 1); outcome.clone() })
    }),
];

// 11.4
#[test]
fn a_job_stands_in_the_journal_as_long_as_it_runs() {
    for (name, face) in FACES {
        for (outcome, letters) in [(Ok(7), 0), (Err(E::Gone), 0), (Err(E::Busy), 1)] {
            let (store, _waits) = (MemoryStore::new(), VirtualWaits::start());
            assert_eq!(face(&store, &outcome), outcome, "{name}");
            assert_eq!((under_way(&store), rows(&store).len()), (0, letters), "{name}: {outcome:?}");
        }
    }
}

/// A journal that fails.
struct Failing {
    inner: MemoryStore,
    kind: StoreErrorKind,
    runs: AtomicU32,
}

impl Failing {
    fn new(kind: StoreErrorKind) -> Self {
        Self { inner: MemoryStore::new(), kind, runs: AtomicU32::new(0) }
    }

    fn run(&self) -> u32 {
        self.runs.fetch_add(1, SeqCst);
        7
    }
}

impl DeadLetterSink for Failing {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        self.inner.submit(letter)
    }
}

impl JobJournal for Failing {
    fn enter(&self, job: DeadLetter) -> Reply<Result<(), StoreError>> {
        if self.kind == StoreErrorKind::Unknown {
            // perhaps it is written all the same
            drop(self.inner.enter(job));
        }
        Reply::ready(Err(StoreError::new(self.kind, "no space left")))
    }
    fn strike(&self, park_id: Id, end: JobEnd) -> Reply<Result<Struck, StoreError>> {
        assert_eq!(self.kind, StoreErrorKind::Unknown, "what was never written is not struck out");
        drop(self.inner.strike(park_id, end));
        Reply::ready(Err(StoreError::new(StoreErrorKind::Busy, "locked")))
    }
    fn journalled(&self) -> BoxFuture<'_, Result<JournalCounts, StoreError>> {
        self.inner.journalled()
    }
}

/// A journal with a fault in it.
struct Panicking(MemoryStore);

impl DeadLetterSink for Panicking {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        self.0.submit(letter)
    }
}

impl JobJournal for Panicking {
    fn enter(&self, _: DeadLetter) -> Reply<Result<(), StoreError>> {
        panic!("a fault on the way in")
    }
    fn strike(&self, _: Id, _: JobEnd) -> Reply<Result<Struck, StoreError>> {
        panic!("a fault on the way out")
    }
    fn journalled(&self) -> BoxFuture<'_, Result<JournalCounts, StoreError>> {
        self.0.journalled()
    }
}

// D14: a failing journal write is an event, and the job runs
#[test]
fn a_journal_that_fails_is_said_and_the_job_runs() {
    #[retry(name = "unwritten", dead_letter(sink = store, journal))]
    fn job(store: &Failing) -> Result<u32, E> {
        Ok(store.run())
    }
    #[retry(name = "unwritten", dead_letter(sink = store, journal))]
    fn beside_a_fault(store: &Panicking) -> Result<u32, E> {
        Ok(u32::from(rows(&store.0).is_empty()))
    }
    static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    assert!(set_listener(|notice| {
        if notice.name == "journal_failed" && notice.operation == "unwritten" {
            HEARD.lock().unwrap().push(notice.to_string());
        }
    }));
    let full = Failing::new(StoreErrorKind::Full);
    assert_eq!((job(&full), full.runs.load(SeqCst)), (Ok(7), 1));
    let heard = std::mem::take(&mut *HEARD.lock().unwrap());
    assert!(heard.len() == 1 && heard[0].contains("[unwritten]") && heard[0].contains("no space left"), "{heard:?}");
    // what may be written is struck out, and a failure of that is said as well
    let unknown = Failing::new(StoreErrorKind::Unknown);
    assert_eq!((job(&unknown), under_way(&unknown.inner)), (Ok(7), 0));
    let heard = std::mem::take(&mut *HEARD.lock().unwrap());
    assert!(heard.len() == 2 && heard[1].contains("cannot be struck out") && heard[1].contains("locked"), "{heard:?}");
    // a panic in it is a failure of it
    assert_eq!(beside_a_fault(&Panicking(MemoryStore::new())), Ok(1));
    let heard = std::mem::take(&mut *HEARD.lock().unwrap());
    assert!(heard.len() == 2 && heard[0].contains("on the way in") && heard[1].contains("on the way out"), "{heard:?}");
}

// D14: unless it is required
#[test]
fn a_required_entry_that_cannot_be_written_refuses_the_call() {
    #[retry(name = "required", fallback = Ok(9), dead_letter(sink = store, journal = required))]
    fn blocking(store: &Failing) -> Result<u32, E> {
        Ok(store.run())
    }
    #[retry(name = "required", dead_letter(sink = store, journal = required))]
    async fn reported(store: &Failing) -> Result<u32, GaveUp<E>> {
        Ok(store.run())
    }
    for kind in [StoreErrorKind::Full, StoreErrorKind::Unknown] {
        let store = Failing::new(kind);
        let Err(E::Refused(refused)) = blocking(&store) else { panic!("it ran") };
        assert_eq!(refused.reason(), StopReason::LedgerRefused);
        assert!(refused.to_string().contains("no space left"), "{refused}");
        let gave_up = reported(&store).now_or_never().unwrap().unwrap_err();
        assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::LedgerRefused, 0));
        // nothing ran, no second route, no letter, and no entry stays
        assert_eq!((store.runs.load(SeqCst), rows(&store.inner).len(), under_way(&store.inner)), (0, 0, 0));
    }
}

// D4: inside a replay of the same job the journal does not act
#[test]
fn a_replay_leaves_the_journal_alone() {
    #[retry(name = "replayed", max_retries = 0, dead_letter(sink = store, job_id = id, payload = id, journal))]
    async fn job(store: &MemoryStore, id: u32, succeeds: bool) -> Result<u32, E> {
        assert_eq!(under_way(store), u64::from(!succeeds));
        if succeeds { Ok(7) } else { Err(E::Busy) }
    }
    let store = Arc::new(MemoryStore::new());
    assert!(paused(job(&store, 3, false)).is_err());
    let of_replay = store.clone();
    let replayer = Replayer::new(store.clone()).on("replayed", move |_: ReplayJob| {
        let store = of_replay.clone();
        async move { job(&store, 3, true).await.map(drop) }
    });
    let report = paused(replayer.execute().run()).unwrap();
    assert_eq!(report.recovered, 1, "{report}");
    assert_eq!(rows(&store)[0].state, LetterState::Recovered);
}

// 11.4: a process that was taken for dead, and was only slow
#[test]
fn a_late_success_recovers_what_was_parked_as_crashed() {
    #[retry(name = "slow", dead_letter(sink = store, job_id = 7, journal))]
    fn slow(store: &MemoryStore, meanwhile: impl Fn()) -> Result<u32, E> {
        meanwhile();
        Ok(7)
    }
    let time = ManualClock::new(std::time::SystemTime::now());
    let store = MemoryStore::with_clock(time.clock());
    let process = store.another();
    let outcome = slow(&process, || {
        time.advance(OWNER_LEASE * 2);
        let reaped = store.reap(Actor::new("other", "")).now_or_never().unwrap().unwrap();
        assert_eq!(reaped.iter().map(|row| row.reason).collect::<Vec<_>>(), [StopReason::Crashed]);
    });
    assert_eq!((outcome, rows(&store)[0].state), (Ok(7), LetterState::Recovered));
}
