//! The scope a replay runs in.
//!
//! A handler usually calls the very function whose letter is being replayed. When that call fails again its dead letter
//! must not be parked beside the replay: it belongs to the replay's result. The scope is how the two find each other. It
//! is set in a thread-local for the time of each poll (or of the blocking call), so it follows the handler's future
//! between threads, and does not follow what the handler spawns.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use crate::attempt::AttemptRecord;
use crate::dead_letter::{DeadLetter, DeadLetterSink, Failure, LetterRow, Parking, Ticket};
use crate::reply::Reply;

thread_local! {
    static CURRENT: RefCell<Option<ReplayScope>> = const { RefCell::new(None) };
}

/// The replay this code runs in.
#[derive(Clone)]
pub struct ReplayScope {
    inner: Arc<Inner>,
}

struct Inner {
    kind: String,
    job_id: String,
    letter_id: String,
    fence: u64,
    report: Mutex<Report>,
}

/// What the failing calls inside the scope said.
#[derive(Default)]
pub(crate) struct Report {
    /// Body runs.
    pub(crate) attempts: u32,
    /// The last call's failure.
    pub(crate) failure: Option<Failure>,
    /// The failed attempts.
    pub(crate) history: Vec<AttemptRecord>,
}

impl Report {
    /// What else is known, where the calls inside reported nothing.
    pub(crate) fn or(&mut self, attempts: u32, history: Vec<AttemptRecord>) {
        if self.attempts == 0 {
            self.attempts = attempts;
            self.history = history;
        }
    }
}

impl ReplayScope {
    /// The scope of a claimed letter's replay.
    pub fn of(row: &LetterRow) -> Self {
        Self {
            inner: Arc::new(Inner {
                kind: row.kind.clone(),
                job_id: row.job_id.clone(),
                letter_id: row.letter_id.clone(),
                fence: row.fence,
                report: Mutex::default(),
            }),
        }
    }

    /// The scope this code runs in; `None` outside every replay.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|current| current.try_borrow().ok().and_then(|current| current.clone())).ok().flatten()
    }

    /// Whether the replay is of this job. A job without an id is that of any letter that was parked without one.
    pub fn covers(&self, kind: &str, job_id: Option<&str>) -> bool {
        self.inner.kind == kind
            && match job_id {
                Some(job_id) => self.inner.job_id == job_id,
                None => self.inner.job_id == self.inner.letter_id,
            }
    }

    /// The replayed operation.
    pub fn kind(&self) -> &str {
        &self.inner.kind
    }

    /// The replayed job.
    pub fn job_id(&self) -> &str {
        &self.inner.job_id
    }

    /// The replayed letter.
    pub fn letter_id(&self) -> &str {
        &self.inner.letter_id
    }

    /// The claim's fence.
    pub fn fence(&self) -> u64 {
        self.inner.fence
    }

    /// Runs a future inside the scope: each poll of it, and its drop.
    pub fn run<F: Future>(self, future: F) -> Scoped<F> {
        Scoped { scope: self, future: Some(Box::pin(future)) }
    }

    /// Runs blocking code inside the scope.
    pub fn run_blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        let _entered = self.enter();
        work()
    }

    /// What the failing calls inside said, so far.
    pub(crate) fn take_report(&self) -> Report {
        std::mem::take(&mut *self.inner.report.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, letter: DeadLetter) {
        let mut report = self.inner.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.attempts = report.attempts.saturating_add(letter.attempts);
        report.failure = Some(Failure::of(&letter));
        report.history.extend(letter.history);
    }

    fn enter(&self) -> Entered {
        let outer = CURRENT.try_with(|current| current.replace(Some(self.clone()))).ok().flatten();
        Entered { outer }
    }
}

impl fmt::Debug for ReplayScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayScope")
            .field("letter_id", &self.inner.letter_id)
            .field("fence", &self.inner.fence)
            .finish_non_exhaustive()
    }
}

/// Puts the outer scope back, also when what ran inside panics.
struct Entered {
    outer: Option<ReplayScope>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // At thread exit the thread-local may be gone already; then nobody reads it either.
        let _gone = CURRENT.try_with(|current| drop(current.replace(self.outer.take())));
    }
}

/// A future that runs inside a [`ReplayScope`].
pub struct Scoped<F> {
    scope: ReplayScope,
    /// Present until it is dropped, inside the scope: drop guards in it report to the replay too.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = self.scope.enter();
        match &mut self.future {
            Some(future) => future.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Scoped<F> {
    fn drop(&mut self) {
        let _entered = self.scope.enter();
        self.future = None;
    }
}

impl<F> fmt::Debug for Scoped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoped").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// Hands a letter over: to the replay that runs this job, if one does, else to the sink.
pub fn hand_over<S: DeadLetterSink + ?Sized>(sink: &S, letter: DeadLetter) -> Ticket {
    match ReplayScope::current() {
        Some(scope) if scope.covers(&letter.kind, letter.job_id.as_deref()) => {
            scope.add(letter);
            Reply::ready(Parking::Replaying)
        }
        _ => sink.submit(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::MemoryStore;
    use crate::stop::StopReason;
    use std::time::{Duration, SystemTime};

    fn letter(kind: &str, job_id: Option<&str>) -> DeadLetter {
        let mut letter = DeadLetter::new(kind, StopReason::Exhausted, SystemTime::UNIX_EPOCH);
        letter.job_id = job_id.map(str::to_owned);
        letter.attempts = 3;
        letter
    }

    fn handed(letter: DeadLetter) -> Parking {
        let Ok(parking) = hand_over(&MemoryStore::new(), letter).wait(Duration::ZERO) else {
            panic!("the store in memory answers at once")
        };
        parking
    }

    // D4
    #[test]
    fn the_same_job_reports_to_the_replay_and_another_parks() {
        let scope = ReplayScope::of(&LetterRow::new("L", "fetch", "a"));
        scope.run_blocking(|| {
            assert!(matches!(handed(letter("fetch", Some("a"))), Parking::Replaying));
            assert!(matches!(handed(letter("fetch", Some("b"))), Parking::Parked { .. }));
            assert!(matches!(handed(letter("store", Some("a"))), Parking::Parked { .. }));
            assert!(matches!(handed(letter("fetch", None)), Parking::Parked { .. }));
        });
        assert!(matches!(handed(letter("fetch", Some("a"))), Parking::Parked { .. }));
        let report = scope.take_report();
        assert_eq!(report.attempts, 3);
        assert_eq!(report.failure.map(|failure| failure.reason), Some(StopReason::Exhausted));
    }

    // D4, D2: without a job id the letter's own id is the job id.
    #[test]
    fn a_job_without_an_id_is_the_replayed_one() {
        let scope = ReplayScope::of(&LetterRow::new("L", "fetch", "L"));
        scope.run_blocking(|| assert!(matches!(handed(letter("fetch", None)), Parking::Replaying)));
    }

    // D4
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_scope_follows_the_future_and_nothing_else() {
        let scope = ReplayScope::of(&LetterRow::new("L", "fetch", "a"));
        let inside = tokio::spawn(scope.run(async {
            for _ in 0..10 {
                assert!(ReplayScope::current().is_some());
                tokio::task::yield_now().await;
            }
            // What the handler spawns is no part of the replay.
            let spawned = tokio::spawn(async { ReplayScope::current().is_none() });
            spawned.await.is_ok_and(|outside| outside)
        }));
        assert!(inside.await.is_ok_and(|outside| outside));
        assert!(ReplayScope::current().is_none());
    }

    // D4: the drop guard of an interrupted call.
    #[test]
    fn the_scope_holds_while_the_future_is_dropped() {
        struct Guard;
        impl Drop for Guard {
            fn drop(&mut self) {
                assert!(matches!(handed(letter("fetch", Some("a"))), Parking::Replaying));
            }
        }
        let scope = ReplayScope::of(&LetterRow::new("L", "fetch", "a"));
        let guard = Guard;
        drop(scope.clone().run(async move {
            std::future::pending::<()>().await;
            drop(guard);
        }));
        assert_eq!(scope.take_report().attempts, 3);
    }

    #[test]
    fn a_panic_inside_leaves_the_scope() {
        let outer = ReplayScope::of(&LetterRow::new("outer", "k", "o"));
        let inner = ReplayScope::of(&LetterRow::new("inner", "k", "i"));
        outer.run_blocking(|| {
            let caught =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| inner.run_blocking(|| panic!("on purpose"))));
            assert!(caught.is_err());
            assert_eq!(ReplayScope::current().map(|scope| scope.letter_id().to_owned()).as_deref(), Some("outer"));
        });
    }
}
