//! A job at each of its await points: what it meets, what it leaves behind, and what must hold of that (SEMANTICS 11.1, 11.3).
#![allow(dead_code, clippy::unwrap_used, clippy::panic)] // each test takes what it needs, and fails where a helper fails

use std::any::Any;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use retry_runtime::dead_letter::{
    Actor, BoxFuture, DeadLetter, DeadLetterSink, JobEnd, JobJournal, JournalCounts, MemoryStore, Parking, Payload,
    Struck, Ticket,
};
use retry_runtime::error::StoreError;
use retry_runtime::id::Id;
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerEntry, LedgerKey, LedgerStatus, LedgerToken};
use retry_runtime::reply::Reply;
use retry_runtime::{Budget, CircuitBreaker, Classify, Elapsed, GaveUp, Refused, RetryContext, StopReason};
use tokio::task::yield_now;

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
pub(crate) enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("much later")]
    #[classify(retryable, retry_after = 0)]
    Later(Duration),
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

/// What its panic says.
const PANIC: &str = "on purpose";

/// How a job's third attempt ends.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    Returns(Result<u32, E>),
    Panics,
    /// No attempt ever ends.
    Hangs,
}

/// Those that come by themselves.
pub(crate) fn endings() -> Vec<Ending> {
    let hint = E::Later(Duration::from_secs(3600));
    let returned = [Ok(7), Err(E::Busy), Err(hint), Err(E::Denied), Err(E::Gone)].map(Ending::Returns);
    returned.into_iter().chain([Ending::Panics]).collect()
}

/// What a job meets, and what it leaves behind.
pub(crate) struct World {
    pub(crate) ending: Ending,
    pub(crate) second_route: Result<u32, E>,
    pub(crate) budget: Budget,
    pub(crate) breaker: CircuitBreaker,
    pub(crate) ledger: MemoryStore,
    pub(crate) journal: MemoryStore,
    pub(crate) entered: Mutex<Vec<Id>>,
    pub(crate) letters: Mutex<Vec<DeadLetter>>,
    pub(crate) runs: AtomicU32,
    failed: AtomicU32,
    /// Successes and final answers: what they are to the ledger.
    done: Mutex<Vec<LedgerStatus>>,
}

impl World {
    pub(crate) fn new(ending: Ending, second_route: Result<u32, E>) -> Self {
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
            done: Mutex::default(),
        }
    }

    /// How many jobs stand in the journal.
    pub(crate) fn under_way(&self) -> u64 {
        self.journal.journalled().now_or_never().unwrap().unwrap().running
    }

    fn ends(&self, outcome: Result<u32, E>) -> Result<u32, E> {
        match outcome {
            Ok(_) => self.done.lock().unwrap().push(LedgerStatus::Ok),
            Err(E::Gone) => self.done.lock().unwrap().push(LedgerStatus::Gone),
            Err(_) => _ = self.failed.fetch_add(1, SeqCst),
        }
        outcome
    }

    fn starts(&self) -> u32 {
        let run = self.runs.fetch_add(1, SeqCst) + 1;
        // 11.4: the entry is there before the first attempt, and as long as one runs
        assert_eq!(self.under_way(), self.entered.lock().unwrap().len() as u64);
        run
    }

    fn run(&self, run: u32) -> Result<u32, E> {
        match &self.ending {
            Ending::Panics if run == 3 => {
                self.failed.fetch_add(1, SeqCst);
                resume_unwind(Box::new(PANIC))
            }
            Ending::Returns(end) if run == 3 => self.ends(end.clone()),
            // the count is used up
            Ending::Returns(end) if run > 3 => self.ends(end.clone()),
            _ => self.ends(Err(E::Busy)),
        }
    }
}

/// An answer that comes when somebody else has had a turn; at once where nobody else has one.
fn later<T: Clone + Send + 'static>(value: T) -> Reply<T> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Reply::ready(value);
    }
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

/// The body of a job.
pub(crate) async fn work(w: &World) -> Result<u32, E> {
    let run = w.starts();
    yield_now().await;
    if matches!(w.ending, Ending::Hangs) {
        return pending().await;
    }
    yield_now().await;
    w.run(run)
}

/// The same where nothing is awaited.
pub(crate) fn work_here(w: &World) -> Result<u32, E> {
    w.run(w.starts())
}

/// Where it goes when it gave up.
pub(crate) async fn second_route(w: &World) -> Result<u32, E> {
    w.runs.fetch_add(1, SeqCst);
    yield_now().await;
    w.ends(w.second_route.clone())
}

pub(crate) fn second_route_here(w: &World) -> Result<u32, E> {
    w.runs.fetch_add(1, SeqCst);
    w.ends(w.second_route.clone())
}

/// The error of a call that reports.
pub(crate) fn unreported(end: Result<u32, GaveUp<E>>) -> Result<u32, E> {
    end.map_err(|gave_up| gave_up.into_last().unwrap_or(E::Denied))
}

pub(crate) type Call<'w> = Pin<Box<dyn Future<Output = Result<u32, E>> + 'w>>;
pub(crate) type Face = for<'w> fn(&'w World, &'w mut RetryContext) -> Call<'w>;

/// How a call was left.
#[derive(Debug)]
pub(crate) enum Left {
    Ended(Result<u32, E>),
    Panicked(Box<dyn Any + Send>),
    Dropped,
}

/// Polls a call so often, then drops it where it stands. Tells how it ended, if it did, and how many letters there were
/// before the drop.
pub(crate) async fn drop_after(polls: usize, w: &World, mut call: Call<'_>) -> (Left, usize) {
    let mut polled = 0;
    let end = poll_fn(|cx| {
        let poll = match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Left::Ended),
            Err(panic) => Poll::Ready(Left::Panicked(panic)),
        };
        polled += 1;
        if poll.is_pending() && polled == polls { Poll::Ready(Left::Dropped) } else { poll }
    })
    .await;
    let before = w.letters.lock().unwrap().len();
    drop(call);
    (end, before)
}

pub(crate) fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// What must hold of a call that is over, however it ended.
pub(crate) fn check(what: &str, w: &World, end: &Left, before: usize) {
    let letters = w.letters.lock().unwrap();
    let what = format!("{what}: {end:?}, {letters:?}");
    // D14: a letter, or a success, takes the entry with it
    assert_eq!(w.under_way(), 0, "{what}");
    if let (Some(letter), Some(entered)) = (letters.first(), w.entered.lock().unwrap().first()) {
        assert_eq!(letter.park_id, *entered, "{what}");
    }
    let (runs, failed, done) = (w.runs.load(SeqCst), w.failed.load(SeqCst), w.done.lock().unwrap());
    // 11.1: accepted = succeeded + gone + refused + parked, with nothing spilled and nothing lost here
    assert_eq!(done.len() + letters.len(), 1, "{what}");
    // the column `ledger` of ARCHITECTURE's table
    let status = done.first().copied().unwrap_or(LedgerStatus::Open);
    let entry = w.ledger.entry(LedgerKey::new("job", "7")).now_or_never().unwrap().unwrap();
    if let Some(entry) = &entry {
        let not_before = letters.first().is_some_and(|letter| letter.not_before.is_some());
        assert_eq!((entry.status, entry.attempts, entry.next_at.is_some()), (status, 1, not_before), "{what}");
    }
    if let Some(letter) = letters.first() {
        // D20: the attempts made so far, the running one and the second route included; and the whole history
        assert_eq!((letter.attempts, letter.kind.as_str()), (runs, "job"), "{what}");
        if !matches!(w.ending, Ending::Hangs) {
            assert_eq!(letter.history.len(), failed as usize, "{what}");
        }
        assert_eq!((letter.job_id.as_deref(), letter.model.as_deref()), (Some("7"), Some("m")), "{what}");
        assert_eq!(letter.payload, Payload::Json("[1,2]".into()), "{what}");
        // 4.1
        assert_eq!(letter.not_before.is_some(), letter.reason == StopReason::HintTooLong, "{what}");
        // under its first reason, when it was being parked already
        let dropped = matches!(end, Left::Dropped) && before == 0;
        assert_eq!(letter.reason == StopReason::Dropped, dropped, "{what}");
        let last = letter.history.last().map(|last| (last.class.as_ref(), last.message.as_str()));
        let (class, message) = last.unwrap_or(("", "the call's future was dropped before it ended"));
        if dropped {
            assert_eq!((letter.class.as_deref().unwrap_or(""), letter.error_message.as_str()), (class, message));
        }
        assert_eq!(letter.reason == StopReason::Panicked, matches!(end, Left::Panicked(_)), "{what}");
    }
    // 11.3: a panic reaches whoever polls, as it was
    let panicked = matches!(w.ending, Ending::Panics) && runs == 3;
    let carried = match end {
        Left::Panicked(carried) => carried.downcast_ref(),
        _ => None,
    };
    if panicked && !matches!(end, Left::Dropped) {
        assert_eq!(carried, Some(&PANIC), "{what}");
        assert_eq!(letters.first().map(|letter| letter.error_message.as_str()), Some(PANIC), "{what}");
    } else {
        assert!(!matches!(end, Left::Panicked(_)), "{what}");
    }
}

/// Drops a call at every one of its await points. Tells how many those are.
pub(crate) fn at_every_await_point(name: &str, face: Face, world: impl Fn() -> World) -> usize {
    for polls in 1..1_000 {
        let (w, mut context) = (world(), RetryContext::new());
        let (end, before) = paused().block_on(async {
            // far beyond every wait: a call that nothing wakes any more fails here
            let limit = Duration::from_secs(86_400);
            let end = tokio::time::timeout(limit, drop_after(polls, &w, face(&w, &mut context))).await;
            end.unwrap_or_else(|_| panic!("{name}, to be dropped at await point {polls}, stands still"))
        });
        check(&format!("{name}, dropped at await point {polls}"), &w, &end, before);
        if !matches!(end, Left::Dropped) {
            return polls - 1;
        }
    }
    panic!("{name} never ends")
}

/// Tries a call with every ending and every second route, dropped at each of its await points. `limited`: it ends though no
/// attempt does.
pub(crate) fn with_every_ending(name: &str, limited: bool, face: Face) {
    let mut points = 0;
    for ending in endings().into_iter().chain(limited.then_some(Ending::Hangs)) {
        for second in [Ok(8), Err(E::Denied), Err(E::Gone)] {
            points += at_every_await_point(name, face, || World::new(ending.clone(), second.clone()));
        }
    }
    assert!(points > 40, "{name}: {points} points");
}
