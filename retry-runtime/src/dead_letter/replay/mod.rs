//! Doing parked jobs again.

mod alarm;
mod crew;
mod handlers;
mod heart;
mod job;
mod report;
mod run;
mod runner;
mod stopper;
mod under_way;
mod work;
mod worker;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use alarm::Timer;
pub use handlers::Handlers;
pub use job::{IntoReplayError, ReplayError, ReplayJob};
pub use report::{ReplayReport, Skipped};
pub use runner::OperationRunner;
pub use stopper::Stopper;
pub use worker::{ReplayWorker, WorkerReport};

use crate::dead_letter::executor::block_on;
use crate::dead_letter::{Actor, DeadLetterStore, Filter};
use crate::error::{StoreError, StoreErrorKind};

/// Takes parked letters and does their jobs again: one after the other, the one longest unseen first.
///
/// A dry run unless [`execute`](Self::execute) is said, of 20 letters unless [`limit`](Self::limit) says otherwise. Each
/// result is written at once, so a crash half-way undoes nothing. A manual replay: it ignores the back-off of standing
/// workers, and obeys a server's hint unless [forced](Self::force). Letters that come while it runs are left for the next
/// one.
///
/// **Letters under way.** A replay that dies leaves its letter `replaying` until its lease ends, 60 s after the last sign of
/// life. Each real run first takes back the leases that have ended, so a program that lives only for one replay (cron, a
/// command) frees what its predecessor left, and replays it. What is still under a lease is left alone and counted in
/// [`under_way`](ReplayReport::under_way). Such a death counts as a crash; the third one abandons the letter.
///
/// **Five failures.** A letter whose replays failed [`MAX_REPLAYS`](crate::dead_letter::MAX_REPLAYS) times (5) is
/// `abandoned`, also when the failures were permanent ones. It is still owed, but no replay takes it any more, until
/// [`abandoned`](Self::abandoned) includes such letters with a grant of further replays, or
/// [`restore`](DeadLetterStore::restore) parks one by hand. A new failing live call does not bring it back.
///
/// **The ledger is left alone.** Inside a replay an annotated function with a `ledger` neither asks it nor writes to it: a
/// job that is recovered by its replay stays `open` there. Have the handler write the end itself where later runs must skip
/// the job: [`AttemptLedger`](crate::ledger::AttemptLedger).
///
/// ```
/// use std::sync::Arc;
/// use std::time::SystemTime;
/// use retry_runtime::StopReason;
/// use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink, MemoryStore, ReplayError, Replayer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), retry_runtime::error::StoreError> {
/// let store = Arc::new(MemoryStore::new());
/// let parked = store.submit(DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now())).await;
/// assert!(parked.is_kept());
///
/// let replayer = Replayer::new(store).on("fetch", |job| async move {
///     // do the job again, for example by the annotated function itself
///     assert!(job.idempotency_key.starts_with(&job.letter_id));
///     Ok::<(), ReplayError>(())
/// });
/// assert_eq!(replayer.run().await?.would_replay, 1);
/// assert_eq!(replayer.execute().run().await?.recovered, 1);
/// # Ok(())
/// # }
/// ```
pub struct Replayer {
    store: Arc<dyn DeadLetterStore>,
    handlers: Handlers,
    filter: Filter,
    limit: Option<u64>,
    executes: bool,
    is_forced: bool,
    /// How many more replays abandoned letters get; `None` leaves them where they are.
    grant: Option<u32>,
    lease: Duration,
    owner: String,
    actor: Actor,
    rate: Option<f64>,
    stop: Stopper,
}

impl Replayer {
    /// A dry replay of at most 20 parked letters, without handlers.
    pub fn new<S: DeadLetterStore + 'static>(store: S) -> Self {
        Self {
            store: Arc::new(store),
            handlers: Handlers::new(),
            filter: Filter::default(),
            limit: Some(20),
            executes: false,
            is_forced: false,
            grant: None,
            lease: Duration::from_secs(60),
            owner: format!("replay-{}", std::process::id()),
            actor: Actor::new("replay", ""),
            rate: None,
            stop: Stopper::default(),
        }
    }

    /// As [`Handlers::on`]. Letters of kinds without a handler are passed over.
    #[must_use]
    pub fn on<F, Fut, T, E>(mut self, kind: impl Into<String>, handler: F) -> Self
    where
        F: Fn(ReplayJob) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        E: IntoReplayError + 'static,
        T: 'static,
    {
        self.handlers = self.handlers.on(kind, handler);
        self
    }

    /// As [`Handlers::on_blocking`]: it blocks the thread that drives the replay.
    #[must_use]
    pub fn on_blocking<F, T, E>(mut self, kind: impl Into<String>, handler: F) -> Self
    where
        F: Fn(ReplayJob) -> Result<T, E> + Send + Sync + 'static,
        E: IntoReplayError,
    {
        self.handlers = self.handlers.on_blocking(kind, handler);
        self
    }

    /// These handlers instead of those so far.
    #[must_use]
    pub fn handlers(mut self, handlers: Handlers) -> Self {
        self.handlers = handlers;
        self
    }

    /// Only letters that match; its `states` are ignored, since only parked letters are replayed (and, if
    /// [asked for](Self::abandoned), abandoned ones).
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Replays at most so many letters; 20 by default. Letters that are passed over do not count.
    #[must_use]
    pub fn limit(mut self, letters: u64) -> Self {
        self.limit = Some(letters);
        self
    }

    /// Replays every letter that matches.
    #[must_use]
    pub fn no_limit(mut self) -> Self {
        self.limit = None;
        self
    }

    /// For real, not dry.
    #[must_use]
    pub fn execute(mut self) -> Self {
        self.executes = true;
        self
    }

    /// Replays also what a server asked to leave alone for longer, and letters whose stored payload was altered.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.is_forced = true;
        self
    }

    /// Replays abandoned letters too: each is [restored](DeadLetterStore::restore) with so many more replays (at least 1)
    /// when its turn comes, and is parked again unless this replay ends it. `abandoned(1)` gives one more chance, and
    /// abandons it again when that fails.
    ///
    /// Only what can be replayed now is restored: a letter without a handler, altered, without payload or not due stays
    /// abandoned.
    #[must_use]
    pub fn abandoned(mut self, more_replays: u32) -> Self {
        self.grant = Some(more_replays.max(1));
        self
    }

    /// Begins at most so many letters per second, evenly spaced; fractions are fine. By default as many as can be. What is
    /// no number above zero does not limit.
    ///
    /// [`run`](Self::run) waits by tokio's timer where the feature `tokio` is on, and by a thread otherwise.
    #[must_use]
    pub fn rate(mut self, per_second: f64) -> Self {
        self.rate = Some(per_second);
        self
    }

    /// How long a letter is kept from others without a sign of life; 60 s by default. It is extended while the handler
    /// runs.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Who replays, and why; `replay` by default.
    #[must_use]
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// A handle that stops this replay after the letter it is at.
    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// Replays. When this future is dropped, the letter it is at is given back.
    ///
    /// # Errors
    /// When the store cannot be read at the start, or takes no leases back. Later failures end the run; the report says so.
    pub async fn run(&self) -> Result<ReplayReport, StoreError> {
        self.run_by(Timer::Runtime).await
    }

    /// Replays, for programs without an asynchronous runtime.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_blocking(&self) -> Result<ReplayReport, StoreError> {
        let for_ever = Duration::from_secs(u64::from(u32::MAX));
        block_on(self.run_by(Timer::Thread), for_ever).unwrap_or_else(|| {
            Err(StoreError::new(StoreErrorKind::Unavailable, "the replay did not end within a hundred years"))
        })
    }
}

impl Replayer {
    async fn run_by(&self, timer: Timer) -> Result<ReplayReport, StoreError> {
        run::Run::start(self, timer).await?.finish_all().await
    }
}

impl fmt::Debug for Replayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replayer")
            .field("kinds", &self.handlers)
            .field("filter", &self.filter)
            .field("limit", &self.limit)
            .field("executes", &self.executes)
            .finish_non_exhaustive()
    }
}
