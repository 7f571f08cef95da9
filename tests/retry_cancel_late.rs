//! `cancel` that fires where no attempt and no wait is: in the second route, while the letter is parked, while the ledger or
//! the journal is asked (SEMANTICS 3.4).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::FutureExt;
use retry_runtime::dead_letter::{
    Actor, BoxFuture, DeadLetter, DeadLetterSink, JobEnd, JobJournal, JournalCounts, MemoryStore, Parking, Struck,
    Ticket,
};
use retry_runtime::error::StoreError;
use retry_runtime::id::Id;
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerEntry, LedgerKey, LedgerStatus, LedgerToken};
use retry_runtime::reply::Reply;
use retry_runtime::{Classify, GaveUp, Refused, RetryContext, StopReason, retry, retrying};
use tokio::time::{Instant, sleep};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("second")]
    #[classify(permanent)]
    Second,
    /// What a report without an error says.
    #[error("cancelled")]
    #[classify(permanent)]
    Cancelled,
    #[error(transparent)]
    #[classify(transparent)]
    Refused(#[from] Refused),
}

/// What a slow store takes to answer.
const SLOW: Duration = Duration::from_secs(60);

/// A store that knows at once, and answers late.
struct World {
    store: MemoryStore,
    letters: Mutex<Vec<DeadLetter>>,
    second_route: Result<u32, E>,
    /// When the call is cancelled.
    cancel: Duration,
    runs: Mutex<u32>,
}

fn late<T: Clone + Send + 'static>(value: T) -> Reply<T> {
    let same = value.clone();
    let (answer, reply) = Reply::pair(|| same);
    tokio::spawn(async move {
        sleep(SLOW).await;
        answer.send(value);
    });
    reply
}

/// What the store within says, which answers at once.
fn within<T>(reply: Reply<T>) -> T {
    reply.wait(Duration::ZERO).ok().unwrap()
}

impl DeadLetterSink for World {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        let letter_id = letter.park_id.to_string();
        drop(self.store.submit(letter.clone()));
        self.letters.lock().unwrap().push(letter);
        late(Parking::Parked { letter_id })
    }
}

impl JobJournal for World {
    fn enter(&self, job: DeadLetter) -> Reply<Result<(), StoreError>> {
        late(within(self.store.enter(job)))
    }
    fn strike(&self, park_id: Id, end: JobEnd) -> Reply<Result<Struck, StoreError>> {
        late(within(self.store.strike(park_id, end)))
    }
    fn journalled(&self) -> BoxFuture<'_, Result<JournalCounts, StoreError>> {
        self.store.journalled()
    }
}

impl AttemptLedger for World {
    fn begin(&self, key: LedgerKey, max_attempts: u32) -> Reply<Result<Begin, StoreError>> {
        late(within(self.store.begin(key, max_attempts)))
    }
    fn end(&self, key: LedgerKey, token: LedgerToken, end: End) -> Reply<Result<bool, StoreError>> {
        late(within(self.store.end(key, token, end)))
    }
    fn entry(&self, key: LedgerKey) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        self.store.entry(key)
    }
    fn entries(
        &self,
        scope: String,
        after: Option<String>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        self.store.entries(scope, after, limit)
    }
    fn reset(&self, key: LedgerKey, actor: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        self.store.reset(key, actor)
    }
}

impl World {
    /// It has these moments: the ledger has answered after one `SLOW`, the journal after two, and so on.
    fn new(cancel: Duration, second_route: Result<u32, E>) -> Self {
        Self { store: MemoryStore::new(), letters: Mutex::default(), second_route, cancel, runs: Mutex::new(0) }
    }

    fn run(&self) -> Result<u32, E> {
        *self.runs.lock().unwrap() += 1;
        Err(E::Busy)
    }

    async fn second(&self) -> Result<u32, E> {
        sleep(SLOW).await;
        self.second_route.clone()
    }

    fn key() -> LedgerKey {
        LedgerKey::new("job", "7")
    }

    fn ledger(&self) -> Option<LedgerStatus> {
        self.store.entry(Self::key()).now_or_never().unwrap().unwrap().map(|entry| entry.status)
    }

    fn under_way(&self) -> u64 {
        self.store.journalled().now_or_never().unwrap().unwrap().running
    }
}

#[retry(name = "job", max_retries = 1, base_delay = "1s", context = context, cancel = sleep(w.cancel), fallback = w.second().await, ledger(store = w, key = 7), dead_letter(sink = w, job_id = 7, journal))]
async fn attribute(w: &World, context: &mut RetryContext) -> Result<u32, E> {
    w.run()
}

#[retry(name = "job", max_retries = 1, base_delay = "1s", context = context, cancel = sleep(w.cancel), fallback = w.second().await, ledger(store = w, key = 7), dead_letter(sink = w, job_id = 7, journal))]
async fn reported(w: &World, context: &mut RetryContext) -> Result<u32, GaveUp<E>> {
    w.run()
}

#[async_trait::async_trait(?Send)]
trait Works {
    async fn method(&self, context: &mut RetryContext) -> Result<u32, E>;
}

#[async_trait::async_trait(?Send)]
impl Works for World {
    #[retry(name = "job", max_retries = 1, base_delay = "1s", context = context, cancel = sleep(self.cancel), fallback = self.second().await, ledger(store = self, key = 7), dead_letter(sink = self, job_id = 7, journal))]
    async fn method(&self, context: &mut RetryContext) -> Result<u32, E> {
        self.run()
    }
}

type Call<'w> = Pin<Box<dyn Future<Output = Result<u32, E>> + 'w>>;
type Face = for<'w> fn(&'w World, &'w mut RetryContext) -> Call<'w>;

const FACES: &[(&str, Face)] = &[
    ("attribute", |w, context| Box::pin(attribute(w, context))),
    ("reported", |w, context| {
        Box::pin(async {
            let end = reported(w, context).await;
            end.map_err(|gave_up| {
                assert!(
                    matches!(gave_up.parking(), Some(Parking::Parked { .. })),
                    "{gave_up:?}: its ticket was awaited"
                );
                gave_up.into_last().unwrap_or(E::Cancelled)
            })
        })
    }),
    ("method", |w, context| w.method(context)),
    ("retrying!", |w, context| {
        Box::pin(async move {
            retrying!(name = "job", max_retries = 1, base_delay = "1s", context = context, cancel = sleep(w.cancel), fallback = w.second().await, ledger(store = w, key = 7), dead_letter(sink = w, job_id = 7, journal);
                async -> Result<u32, E> { w.run() })
        })
    }),
];

/// What came of a call that was cancelled at a moment.
#[derive(Debug, PartialEq)]
struct Seen {
    end: Result<u32, E>,
    reason: Option<StopReason>,
    runs: u32,
    letters: Vec<(StopReason, u32, String)>,
    ledger: Option<LedgerStatus>,
    took: Duration,
}

async fn cancelled_at(face: Face, at: Duration, second_route: Result<u32, E>) -> Seen {
    let (w, mut context, start) = (World::new(at, second_route), RetryContext::new(), Instant::now());
    let end = face(&w, &mut context).await;
    assert_eq!(w.under_way(), 0, "D14: it stands in the journal no more");
    let letters = w.letters.lock().unwrap();
    Seen {
        end,
        reason: context.stop_reason(),
        runs: *w.runs.lock().unwrap(),
        letters: letters.iter().map(|letter| (letter.reason, letter.attempts, letter.error_message.clone())).collect(),
        ledger: w.ledger(),
        took: start.elapsed(),
    }
}

/// The ledger and the journal have answered, two attempts were made, with a wait of a second between them: here the second
/// route begins, takes as long as an answer, and the letter is parked.
const SECOND_ROUTE: Duration = Duration::from_secs(2 * 60 + 1);
const MOMENT: Duration = Duration::from_secs(7);

// 3.4, 9.2: the second route goes on to its end, and that is the call's
#[tokio::test(start_paused = true)]
async fn in_the_second_route_it_changes_nothing() {
    for (name, face) in FACES {
        for at in [SECOND_ROUTE + MOMENT, SECOND_ROUTE + 8 * MOMENT] {
            let seen = cancelled_at(*face, at, Ok(8)).await;
            let recovered = Seen {
                end: Ok(8),
                reason: Some(StopReason::Succeeded),
                runs: 2,
                letters: Vec::new(),
                ledger: Some(LedgerStatus::Ok),
                // the entry is struck out while the ledger writes
                took: SECOND_ROUTE + 2 * SLOW,
            };
            assert_eq!(seen, recovered, "{name}, cancelled after {at:?}");
        }
    }
}

// 3.4, 9.2, 11.1: nor does it where the second route fails, or while the letter is parked and the ledger writes
#[tokio::test(start_paused = true)]
async fn in_the_parking_it_changes_nothing() {
    for (name, face) in FACES {
        for at in [SECOND_ROUTE + MOMENT, SECOND_ROUTE + SLOW + MOMENT, SECOND_ROUTE + 2 * SLOW + MOMENT] {
            let seen = cancelled_at(*face, at, Err(E::Second)).await;
            let parked = Seen {
                end: Err(E::Second),
                reason: Some(StopReason::Exhausted),
                runs: 2,
                letters: vec![(StopReason::Exhausted, 3, "second".into())],
                ledger: Some(LedgerStatus::Open),
                took: SECOND_ROUTE + 2 * SLOW,
            };
            assert_eq!(seen, parked, "{name}, cancelled after {at:?}");
        }
    }
}

// 3.4, 9.1: up to there it wins: in the wait, and before the first attempt while the ledger or the journal is asked
#[tokio::test(start_paused = true)]
async fn before_the_second_route_it_ends_the_call() {
    let attempts_begin = 2 * SLOW;
    for (name, face) in FACES {
        for (at, runs, message) in [
            (MOMENT, 0, "cancelled"),
            (SLOW + MOMENT, 0, "cancelled"),
            (attempts_begin + Duration::from_millis(500), 1, "busy"),
        ] {
            let seen = cancelled_at(*face, at, Ok(8)).await;
            let cancelled = match &seen.end {
                Err(E::Refused(refused)) => refused.reason() == StopReason::Cancelled,
                end => *end == Err(E::Cancelled),
            };
            assert!(cancelled, "{name}, cancelled after {at:?}: {seen:?}");
            let (reason, took) = (StopReason::Cancelled, at.max(attempts_begin) + SLOW);
            assert_eq!((seen.reason, seen.runs, seen.took), (Some(reason), runs, took), "{name}, after {at:?}");
            assert_eq!(seen.letters, [(reason, runs, message.to_owned())], "{name}, cancelled after {at:?}");
            assert_eq!(seen.ledger, Some(LedgerStatus::Open), "{name}, cancelled after {at:?}");
        }
    }
}

// 11.7: what the ledger refuses was not cancelled
#[tokio::test(start_paused = true)]
async fn a_refusal_comes_before_it() {
    for (name, face) in FACES.iter().filter(|(name, _)| *name != "reported") {
        let (w, mut context) = (World::new(MOMENT, Ok(8)), RetryContext::new());
        let Ok(Begin::Go { token, .. }) = within(w.store.begin(World::key(), 3)) else { panic!("refused") };
        within(w.store.end(World::key(), token, End::Ok)).unwrap();
        let end = face(&w, &mut context).await;
        assert!(matches!(&end, Err(E::Refused(why)) if why.reason() == StopReason::LedgerRefused), "{name}: {end:?}");
        assert_eq!((w.letters.lock().unwrap().len(), w.ledger()), (0, Some(LedgerStatus::Ok)), "{name}");
    }
}
