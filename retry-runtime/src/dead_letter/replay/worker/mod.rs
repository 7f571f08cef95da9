//! The standing worker: replays what is due beside the program's own work, until it is stopped.

mod pauses;
mod report;
mod run;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub use report::WorkerReport;

use super::alarm::Timer;
use super::{Handlers, IntoReplayError, OperationRunner, ReplayJob, Stopper};
use crate::dead_letter::executor::block_on;
use crate::dead_letter::{Actor, BulkOperations, ClaimRequest, Filter};
use crate::error::{StoreError, StoreErrorKind};
use crate::verdict::Disposition;

type Progress = Box<dyn Fn(&WorkerReport) + Send + Sync>;

/// Replays parked letters as they become due, and runs the replays that operators have [started](BulkOperations::start),
/// until it is [stopped](Self::stopper): what a program that lives long runs beside its work. Any number of them may share a
/// store, in one process or in many.
///
/// **What it takes.** Parked letters of the kinds it has handlers for, each under a lease that is kept while its handler
/// runs. Unlike a [`Replayer`](crate::dead_letter::Replayer) it obeys the back-off between the replays of a letter (1 minute
/// after the first failure, doubled each time, at most 1 hour), and leaves out what only a person can help:
/// - letters whose newest failure was permanent, unless [`permanent`](Self::permanent) or the [filter](Self::filter) includes
///   them. How many of which class are left out is said once at each start, by a notice `replay_worker_leaves_out`;
/// - letters [that cannot be replayed as they are](crate::dead_letter::LetterRow::is_replayable);
/// - letters that a server asked to leave alone, until they are due;
/// - abandoned letters, as everybody does.
///
/// **What cannot be started.** A letter whose handler says [`not_started`](crate::dead_letter::ReplayError::not_started) is given back, counts
/// nothing, and is left alone for a minute, by all standing workers: the store keeps that in
/// [`replay_after`](crate::dead_letter::LetterRow::replay_after). One whose payload cannot be read is left alone for an hour.
/// After [`stop`](crate::dead_letter::ReplayError::stop) this worker takes no letters for a while, from 1 second up to 1 minute.
///
/// **Operations.** One at a time, the oldest first, as an [`OperationRunner`](crate::dead_letter::OperationRunner) does it:
/// at the operation's own rate and concurrency, beside the worker's letters. Taken are replays that are pending or whose
/// runner has died, and whose filter names no kinds, or one that this worker has a handler for. Members of other kinds are
/// left `blocked`, and the operation is paused then.
///
/// **When the store fails**, that is said once, by a notice `replay_worker_waits`, and tried again after growing pauses of up
/// to 1 minute. Only what no waiting helps ends the worker (the store was closed, or refuses the request as senseless), with
/// a notice `replay_worker_ended` and the error.
///
/// **The end.** Stopped, it takes nothing more and lets the handlers that run come to their end, for as long as
/// [`stop_within`](Self::stop_within) allows; dropped, it ends at once. In both cases what is not done is given back, without
/// counting as a replay or a crash.
///
/// ```
/// use std::sync::Arc;
/// use std::time::{Duration, SystemTime};
/// use retry_runtime::StopReason;
/// use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink, MemoryStore, ReplayError, ReplayWorker};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), retry_runtime::error::StoreError> {
/// let store = Arc::new(MemoryStore::new());
/// let parked = store.submit(DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now())).await;
/// assert!(parked.is_kept());
///
/// let worker = ReplayWorker::new(store).start_after(Duration::ZERO).on("fetch", |job| async move {
///     // do the job again, for example by the annotated function itself
///     assert!(!job.letter_id.is_empty());
///     Ok::<(), ReplayError>(())
/// });
/// let stopper = worker.stopper();
/// let worker = worker.progress(move |report| {
///     if report.recovered == 1 {
///         stopper.stop(); // usually: when the program ends
///     }
/// });
/// println!("{worker}");
/// assert_eq!(worker.run().await?.recovered, 1);
/// # Ok(())
/// # }
/// ```
pub struct ReplayWorker {
    store: Arc<dyn BulkOperations>,
    handlers: Handlers,
    filter: Filter,
    takes_permanent: bool,
    takes_letters: bool,
    runs_operations: bool,
    concurrency: u32,
    rate: Option<f64>,
    every: Duration,
    start_after: Duration,
    stop_within: Duration,
    lease: Duration,
    name: String,
    actor: Actor,
    stop: Stopper,
    progress: Option<Progress>,
}

impl ReplayWorker {
    /// A worker without handlers: one letter at a time, looking every 5 seconds.
    pub fn new<S: BulkOperations + 'static>(store: S) -> Self {
        Self {
            store: Arc::new(store),
            handlers: Handlers::new(),
            filter: Filter::default(),
            takes_permanent: false,
            takes_letters: true,
            runs_operations: true,
            concurrency: 1,
            rate: None,
            every: Duration::from_secs(5),
            start_after: Duration::from_secs(5),
            stop_within: Duration::from_secs(30),
            lease: Duration::from_secs(60),
            name: format!("worker-{}", std::process::id()),
            actor: Actor::new("replay worker", ""),
            stop: Stopper::default(),
            progress: None,
        }
    }

    /// As [`Handlers::on`]. Letters of kinds without a handler are left to other workers.
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

    /// As [`Handlers::on_blocking`]: each runs on a thread of its own.
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

    /// Only letters that match; its `states` are ignored. Operations have filters of their own.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Replays permanent failures too.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.takes_permanent = true;
        self
    }

    /// Only operations: no letter is replayed that nobody asked for.
    #[must_use]
    pub fn operations_only(mut self) -> Self {
        (self.takes_letters, self.runs_operations) = (false, true);
        self
    }

    /// Only letters: operations are left to others.
    #[must_use]
    pub fn letters_only(mut self) -> Self {
        (self.takes_letters, self.runs_operations) = (true, false);
        self
    }

    /// At most so many letters at once, 1 to 1,024; 1 by default. An operation has its own number, beside this one.
    #[must_use]
    pub fn concurrency(mut self, letters: u32) -> Self {
        self.concurrency = letters.clamp(1, 1_024);
        self
    }

    /// Begins at most so many letters per second, as [`Replayer::rate`](crate::dead_letter::Replayer::rate). An operation has
    /// its own rate, beside this one.
    #[must_use]
    pub fn rate(mut self, per_second: f64) -> Self {
        self.rate = Some(per_second);
        self
    }

    /// How long until it looks again when nothing was due; 5 s by default, at least 10 ms. A fifth more or less, by chance, so
    /// that workers do not ask all at once. While there is something to do, it goes on without a pause.
    #[must_use]
    pub fn every(mut self, wait: Duration) -> Self {
        self.every = wait.max(Duration::from_millis(10));
        self
    }

    /// How long it waits before its first look, so that a program that dies at its start does not take letters each time; 5 s
    /// by default. A fifth more or less.
    #[must_use]
    pub fn start_after(mut self, grace: Duration) -> Self {
        self.start_after = grace;
        self
    }

    /// How long handlers that run may go on once it was stopped; 30 s by default. Then they are dropped, and their letters
    /// given back. (The thread of a blocking handler cannot be stopped: its letter is given back at its end.)
    #[must_use]
    pub fn stop_within(mut self, wait: Duration) -> Self {
        self.stop_within = wait;
        self
    }

    /// How long a letter, and an operation, is kept from others without a sign of life; 60 s by default. Extended while its
    /// handler runs.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Who has the letters, for people to read; the process by default.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// In whose name letters change; `replay worker` by default.
    #[must_use]
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// Called with what was done so far, after each letter and each operation.
    #[must_use]
    pub fn progress(mut self, see: impl Fn(&WorkerReport) + Send + Sync + 'static) -> Self {
        self.progress = Some(Box::new(see));
        self
    }

    /// A handle that stops the worker.
    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// Works until it is stopped. Waits by tokio's timer where the feature `tokio` is on, and by a thread otherwise.
    ///
    /// # Errors
    /// `Invalid` for a worker without handlers, and where the store refuses its requests; `Closed` when the store was closed.
    pub async fn run(&self) -> Result<WorkerReport, StoreError> {
        run::Run::new(self, Timer::Runtime)?.until_stopped().await
    }

    /// Works until it is stopped, for programs without an asynchronous runtime.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_blocking(&self) -> Result<WorkerReport, StoreError> {
        let for_ever = Duration::from_secs(u64::from(u32::MAX));
        let run = run::Run::new(self, Timer::Thread)?.until_stopped();
        block_on(run, for_ever).unwrap_or_else(|| {
            Err(StoreError::new(StoreErrorKind::Unavailable, "the worker did not end within a hundred years"))
        })
    }
}

impl ReplayWorker {
    /// The letters it takes.
    fn taken(&self) -> Filter {
        let mut filter = self.filter.clone();
        if self.leaves_permanent_out() {
            let others = Disposition::ALL.iter().copied().filter(|of| *of != Disposition::Permanent);
            filter.dispositions = others.collect();
        }
        filter
    }

    /// Whoever names dispositions has decided.
    fn leaves_permanent_out(&self) -> bool {
        !self.takes_permanent && self.filter.dispositions.is_empty()
    }

    fn claim(&self, limit: u32) -> ClaimRequest {
        let mut claim = ClaimRequest::new(self.handlers.kinds(), self.name.clone());
        claim.filter = self.taken();
        claim.limit = limit;
        claim.lease = self.lease;
        claim.replayable_only = true;
        claim.keep_alive = self.store.capabilities().heartbeats;
        claim
    }

    fn runner(&self) -> OperationRunner {
        OperationRunner::of_worker(Arc::clone(&self.store), self.handlers.clone(), self.stop.clone())
            .lease(self.lease)
            .name(self.name.clone())
            .actor(self.actor.clone())
    }
}

/// What it does, in one line: ``worker-7: replays `fetch`, 1 at a time, looks every 5s; leaves out permanent failures, and
/// altered or missing payloads``.
impl fmt::Display for ReplayWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.handlers.kinds().iter().map(|kind| format!("`{kind}`")).collect();
        let what = match (self.takes_letters, self.runs_operations) {
            (true, true) => "replays",
            (true, false) => "replays, but runs no operations,",
            (false, _) => "runs operations only, of",
        };
        write!(f, "{}: {what} {}", self.name, kinds.join(", "))?;
        if self.takes_letters {
            write!(f, ", {} at a time", self.concurrency)?;
            if let Some(rate) = self.rate {
                write!(f, ", {rate} per second")?;
            }
        }
        write!(f, ", looks every {:?}", self.every)?;
        if self.takes_letters {
            let permanent = if self.leaves_permanent_out() { "permanent failures, and " } else { "" };
            write!(f, "; leaves out {permanent}altered or missing payloads")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ReplayWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayWorker")
            .field("name", &self.name)
            .field("handlers", &self.handlers)
            .field("filter", &self.filter)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}
