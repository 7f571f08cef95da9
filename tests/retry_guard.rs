//! A job that is dropped at any of its await points is parked exactly once, and says so (SEMANTICS 11.1, 11.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use retry_runtime::dead_letter::{
    Actor, BoxFuture, DeadLetter, DeadLetterSink, DeadLetterStore, Filter, JobEnd, JobJournal, JournalCounts,
    MemoryStore, PageRequest, Parking, Payload, Struck, Ticket,
};
use retry_runtime::error::StoreError;
use retry_runtime::id::Id;
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerEntry, LedgerKey, LedgerToken};
use retry_runtime::observe::{self, Event};
use retry_runtime::reply::Reply;
use retry_runtime::{Budget, CircuitBreaker, Classify, Elapsed, Refused, RetryContext, StopReason, retry, retrying};
use tokio::task::yield_now;

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("denied")]
    #[classify(permanent)]
    Denied,
    #[error("gone")]
    #[classify(gone)]
    Gone,
    #[error(transparent)]
    #[classify(transparent)]
    Refused(#[from] Refused),
    #[error("slow")]
    #[classify(retryable)]
    Slow(#[from] Elapsed),
}

/// What a job meets, and what it leaves behind.
struct World {
    /// How its third attempt ends; `None`: no attempt ever ends.
    ending: Option<Result<u32, E>>,
    second_route: Result<u32, E>,
    budget: Budget,
    breaker: CircuitBreaker,
    ledger: MemoryStore,
    journal: MemoryStore,
    entered: Mutex<Vec<Id>>,
    letters: Mutex<Vec<DeadLetter>>,
    runs: AtomicU32,
    failed: AtomicU32,
    /// Successes and final answers.
    done: AtomicU32,
}

impl World {
    fn new(ending: Option<Result<u32, E>>, second_route: Result<u32, E>) -> Self {
        Self {
            ending,
            second_route,
            budget: Budget::new(),
            breaker: CircuitBreaker::new(),
            ledger: MemoryStore::new(),
            journal: MemoryStore::new(),
            entered: Mutex::default(),
            letters: Mutex::default(),
            runs: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            done: AtomicU32::new(0),
        }
    }

    /// How many jobs stand in the journal.
    fn under_way(&self) -> u64 {
        self.journal.journalled().now_or_never().unwrap().unwrap().running
    }

    fn ends(&self, outcome: Result<u32, E>) -> Result<u32, E> {
        match outcome {
            Ok(_) | Err(E::Gone) => self.done.fetch_add(1, SeqCst),
            Err(_) => self.failed.fetch_add(1, SeqCst),
        };
        outcome
    }
}

/// An answer that comes when somebody else has had a turn.
fn later<T: Clone + Send + 'static>(value: T) -> Reply<T> {
    let same = value.clone();
    let (answer, reply) = Reply::pair(|| same);
    tokio::spawn(async move {
        yield_now().await;
        answer.send(value);
    });
    reply
}

impl DeadLetterSink for World {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        let letter_id = letter.park_id.to_string();
        drop(self.journal.submit(letter.clone()));
        self.letters.lock().unwrap().push(letter);
        later(Parking::Parked { letter_id })
    }
}

impl JobJournal for World {
    fn enter(&self, job: DeadLetter) -> Reply<Result<(), StoreError>> {
        assert_eq!((job.kind.as_str(), job.job_id.as_deref(), job.reason), ("job", Some("7"), StopReason::Crashed));
        assert_eq!((job.payload.clone(), self.runs.load(SeqCst)), (Payload::Json("[1,2]".into()), 0));
        self.entered.lock().unwrap().push(job.park_id);
        later(self.journal.enter(job).wait(Duration::ZERO).ok().unwrap())
    }
    fn strike(&self, park_id: Id, end: JobEnd) -> Reply<Result<Struck, StoreError>> {
        let struck = self.journal.strike(park_id, end).wait(Duration::ZERO).ok().unwrap();
        assert_eq!(struck.as_ref().ok(), Some(&Struck::Removed));
        later(struck)
    }
    fn journalled(&self) -> BoxFuture<'_, Result<JournalCounts, StoreError>> {
        self.journal.journalled()
    }
}

impl AttemptLedger for World {
    fn begin(&self, key: LedgerKey, max_attempts: u32) -> Reply<Result<Begin, StoreError>> {
        later(self.ledger.begin(key, max_attempts).wait(Duration::ZERO).ok().unwrap())
    }
    fn end(&self, key: LedgerKey, token: LedgerToken, end: End) -> Reply<Result<bool, StoreError>> {
        later(self.ledger.end(key, token, end).wait(Duration::ZERO).ok().unwrap())
    }
    fn entry(&self, key: LedgerKey) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        self.ledger.entry(key)
    }
    fn entries(
        &self,
        scope: String,
        after: Option<String>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        self.ledger.entries(scope, after, limit)
    }
    fn reset(&self, key: LedgerKey, actor: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        self.ledger.reset(key, actor)
    }
}

async fn work(w: &World) -> Result<u32, E> {
    let run = w.runs.fetch_add(1, SeqCst) + 1;
    // 11.4: the entry is there before the first attempt, and as long as one runs
    assert_eq!(w.under_way(), w.entered.lock().unwrap().len() as u64);
    yield_now().await;
    let Some(ending) = &w.ending else { return pending().await };
    yield_now().await;
    w.ends(if run < 3 { Err(E::Busy) } else { ending.clone() })
}

async fn second_route(w: &World) -> Result<u32, E> {
    w.runs.fetch_add(1, SeqCst);
    yield_now().await;
    w.ends(w.second_route.clone())
}

type Call<'w> = Pin<Box<dyn Future<Output = Result<u32, E>> + 'w>>;
type Face = for<'w> fn(&'w World, &'w mut RetryContext) -> Call<'w>;

macro_rules! faces {
    ($w:ident, $context:ident; $($name:ident($($options:tt)*);)*) => {
        $(
            #[retry(
                name = "job",
                max_retries = 3,
                dead_letter(sink = $w, job_id = 7, payload = vec![1, 2], model = "m"),
                $($options)*
            )]
            async fn $name($w: &World, $context: &mut RetryContext) -> Result<u32, E> {
                let _read = $context.attempts();
                work($w).await
            }
        )*
        const FACES: &[(&str, Face)] = &[
            $((stringify!($name), |w, context| Box::pin($name(w, context))),)*
            ("new_context", |w, _| Box::pin(new_context(w))),
            ("retrying", |w, _| Box::pin(inline(w))),
            ("journalled", |w, _| Box::pin(journalled(w))),
            ("journal_required", |w, context| Box::pin(journal_required(w, context))),
        ];
    };
}

faces! {
    w, context;
    plain();
    no_wait(base_delay = Duration::ZERO);
    in_context(context = context);
    second(fallback = second_route(w).await);
    counted(ledger(store = w, key = 7));
    skipping(ledger(store = w, key = 7, skipped = { yield_now().await; Ok(0) }));
    limited(attempt_timeout = "5s");
    cancellable(cancel = pending::<()>());
    cancelled(cancel = tokio::time::sleep(Duration::from_millis(2500)));
    on_a_budget(budget = &w.budget);
    behind_a_breaker(breaker = &w.breaker);
    everything(
        context = context, fallback = second_route(w).await, ledger(store = w, key = 7), attempt_timeout = "5s",
        deadline = "1h", cancel = pending::<()>(), budget = &w.budget, breaker = &w.breaker
    );
}

#[retry(name = "job", max_retries = 3, context = seen, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m"))]
async fn new_context(w: &World) -> Result<u32, E> {
    assert_eq!(seen.attempts(), w.runs.load(SeqCst) + 1);
    work(w).await
}

#[retry(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal))]
async fn journalled(w: &World) -> Result<u32, E> {
    work(w).await
}

#[retry(
    name = "job", max_retries = 3, context = context, fallback = second_route(w).await, ledger(store = w, key = 7),
    dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal = required), deadline = "1h"
)]
async fn journal_required(w: &World, context: &mut RetryContext) -> Result<u32, E> {
    work(w).await
}

async fn inline(w: &World) -> Result<u32, E> {
    retrying!(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m");
        async -> Result<u32, E> { work(w).await })
}

/// Polls a call so often, then drops it where it stands. Tells how it ended, if it did, and how many letters there were
/// before the drop.
async fn drop_after(polls: usize, w: &World, mut call: Call<'_>) -> (Option<Result<u32, E>>, usize) {
    let mut polled = 0;
    let end = poll_fn(|cx| {
        let poll = call.as_mut().poll(cx).map(Some);
        polled += 1;
        if poll.is_pending() && polled == polls { Poll::Ready(None) } else { poll }
    })
    .await;
    let before = w.letters.lock().unwrap().len();
    drop(call);
    (end, before)
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Drops a call at every one of its await points. Tells how many those are.
fn at_every_await_point(name: &str, face: Face, world: impl Fn() -> World) -> usize {
    for polls in 1.. {
        let (w, mut context) = (world(), RetryContext::new());
        let (end, before) = paused().block_on(drop_after(polls, &w, face(&w, &mut context)));
        let letters = w.letters.into_inner().unwrap();
        // D14: a letter, or a success, takes the entry with it
        assert_eq!(w.journal.journalled().now_or_never().unwrap().unwrap().running, 0, "{name}, {polls}");
        if let (Some(letter), Some(entered)) = (letters.first(), w.entered.lock().unwrap().first()) {
            assert_eq!(letter.park_id, *entered, "{name}, {polls}");
        }
        let (runs, failed) = (w.runs.load(SeqCst), w.failed.load(SeqCst));
        let done = w.done.load(SeqCst);
        let what = format!("{name}, dropped at await point {polls}: {end:?}, {letters:?}");
        // 11.1: accepted = succeeded + gone + refused + parked, with nothing spilled and nothing lost here
        assert_eq!(done as usize + letters.len(), 1, "{what}");
        if let Some(letter) = letters.first() {
            // D20: the attempts made so far, the running one and the second route included; and the whole history
            assert_eq!((letter.attempts, letter.kind.as_str()), (runs, "job"), "{what}");
            if w.ending.is_some() {
                assert_eq!(letter.history.len(), failed as usize, "{what}");
            }
            assert_eq!((letter.job_id.as_deref(), letter.model.as_deref()), (Some("7"), Some("m")), "{what}");
            assert_eq!(letter.payload, Payload::Json("[1,2]".into()), "{what}");
            // under its first reason, when it was being parked already
            let dropped = end.is_none() && before == 0;
            assert_eq!(letter.reason == StopReason::Dropped, dropped, "{what}");
            let last = letter.history.last().map(|last| (last.class.as_ref(), last.message.as_str()));
            let (class, message) = last.unwrap_or(("", "the call's future was dropped before it ended"));
            if dropped {
                assert_eq!((letter.class.as_deref().unwrap_or(""), letter.error_message.as_str()), (class, message));
            }
        }
        if end.is_some() {
            return polls - 1;
        }
        assert!(polls < 1_000, "{name} never ends");
    }
    0
}

// 11.3, 11.1, D5, D20
#[test]
fn dropped_at_any_await_point_it_is_parked_once() {
    let endings = [Ok(7), Err(E::Busy), Err(E::Denied), Err(E::Gone)];
    for (name, face) in FACES {
        let mut points = 0;
        for ending in endings.iter().cloned().map(Some).chain([None]) {
            for second in [Ok(8), Err(E::Denied), Err(E::Gone)] {
                if ending.is_none() && !matches!(*name, "limited" | "cancelled" | "everything") {
                    continue; // nothing would end it
                }
                points += at_every_await_point(name, *face, || World::new(ending.clone(), second.clone()));
            }
        }
        assert!(points > 40, "{name}: {points} points");
    }
}

// 11.1: what the ledger refuses is not owed, wherever it is dropped then; nobody knows that before it has answered
#[test]
fn a_refused_call_leaves_no_letter() {
    for (name, face) in FACES.iter().filter(|(name, _)| matches!(*name, "counted" | "skipping" | "everything")) {
        for polls in 1..4 {
            let (w, mut context) = (World::new(Some(Ok(7)), Ok(8)), RetryContext::new());
            let key = LedgerKey::new("job", "7");
            let begun = w.ledger.begin(key.clone(), 3).wait(Duration::ZERO).ok().unwrap();
            let Ok(Begin::Go { token, .. }) = begun else { panic!("refused") };
            assert!(w.ledger.end(key, token, End::Ok).wait(Duration::ZERO).ok().unwrap().unwrap());
            let (end, _) = paused().block_on(drop_after(polls, &w, face(&w, &mut context)));
            let reasons: Vec<_> =
                w.letters.lock().unwrap().iter().map(|letter| (letter.reason, letter.attempts)).collect();
            let owed = if polls == 1 { vec![(StopReason::Dropped, 0)] } else { vec![] };
            assert_eq!(reasons, owed, "{name}, dropped at await point {polls}: {end:?}");
        }
    }
}

// 11.3: a future that was never polled was never accepted
#[test]
fn what_is_never_polled_is_never_parked() {
    for (name, face) in FACES {
        let (w, mut context) = (World::new(Some(Ok(7)), Ok(8)), RetryContext::new());
        drop(face(&w, &mut context));
        assert_eq!((w.letters.lock().unwrap().len(), w.runs.load(SeqCst)), (0, 0), "{name}");
    }
}

#[retry(name = "hangs", dead_letter(sink = store, job_id = id))]
async fn hangs(store: Arc<MemoryStore>, id: &'static str) -> Result<u32, E> {
    pending().await
}

// 11.3: whoever drops it
#[test]
fn a_timeout_an_abort_a_select_and_the_end_of_the_runtime_park() {
    let store = Arc::new(MemoryStore::new());
    let runtime = paused();
    runtime.block_on(async {
        let limit = Duration::from_secs(5);
        assert!(tokio::time::timeout(limit, hangs(store.clone(), "timeout")).await.is_err());
        let task = tokio::spawn(hangs(store.clone(), "abort"));
        // never polled
        tokio::spawn(hangs(store.clone(), "never")).abort();
        yield_now().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        tokio::select! {
            _ = hangs(store.clone(), "select") => unreachable!("it hangs"),
            () = tokio::time::sleep(limit) => {}
        }
        let _running = tokio::spawn(hangs(store.clone(), "runtime"));
        yield_now().await;
    });
    drop(runtime);
    let rows = paused().block_on(store.list(Filter::default(), PageRequest::default())).unwrap().rows;
    let mut found: Vec<_> = rows.iter().map(|row| (row.job_id.as_str(), row.reason, row.attempts)).collect();
    found.sort_unstable_by_key(|row| row.0);
    let dropped = ["abort", "runtime", "select", "timeout"].map(|job| (job, StopReason::Dropped, 1));
    assert_eq!(found, dropped);
}

/// A refused call may take what the letter would have borrowed, and the future stays `Send` with whoever watches it.
#[retry(
    name = "whole",
    observer = observe::from_fn(|_: &Event<'_>| ()),
    ledger(store = store, key = 7, skipped = { drop(job); Ok(0) }),
    dead_letter(sink = store, job_id = job.len(), payload = job, model = "m", journal)
)]
async fn whole(store: Arc<MemoryStore>, job: String) -> Result<usize, E> {
    yield_now().await;
    Ok(job.len())
}

#[tokio::test]
async fn a_guarded_future_is_send_and_frees_what_a_refused_call_owes_nothing_for() {
    let store = Arc::new(MemoryStore::new());
    for wanted in [3, 0] {
        let task = tokio::spawn(whole(store.clone(), "job".to_owned()));
        assert_eq!(task.await.unwrap().ok(), Some(wanted));
    }
}
