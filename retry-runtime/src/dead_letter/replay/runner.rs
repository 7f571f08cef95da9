//! Running bulk operations.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::alarm::{Timer, pause};
use super::crew::Crew;
use super::heart::{Extend, Heart, Kept};
use super::job::is_without_payload;
use super::work::{Ended, Lease, Ways, work};
use super::{Handlers, IntoReplayError, ReplayJob, Stopper};
use crate::clock;
use crate::dead_letter::executor::block_on;
use crate::dead_letter::{
    Actor, BoxFuture, BulkOperations, Claimed, DeadLetterStore, Leave, MemberClaim, Members, Next, Operation,
    OperationStatus, OperationTicket, Pace, Payload, Verb,
};
use crate::error::{StoreError, StoreErrorKind};

/// Members of a discard or restore that are done in one transaction.
const CHUNK: u32 = 200;

type Progress = Box<dyn Fn(&Operation) + Send + Sync>;

/// Runs [bulk operations](BulkOperations) to their end: so fast, so many at once, and so carefully as each one says.
///
/// One runner has an operation at a time, under a lease that it extends while it runs. When its process dies, another
/// runner can take the operation after the lease, or [at once](Self::take_over); what was done stays done, and a letter
/// whose replay died comes again when its own lease has ended.
///
/// A letter whose handler [could not be started](crate::dead_letter::ReplayError::not_started) is given back and waits for
/// the next run; [`stop`](crate::dead_letter::ReplayError::stop) pauses the operation with a note. What is paused or
/// cancelled by an operator, from any process, begins no further letter; handlers that run are let to their end.
///
/// ```
/// use std::sync::Arc;
/// use std::time::SystemTime;
/// use retry_runtime::StopReason;
/// use retry_runtime::dead_letter::{
///     Actor, BulkOperations, DeadLetter, DeadLetterSink, Filter, MemoryStore, OperationRequest, OperationRunner,
///     OperationStatus, ReplayError, Verb,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), retry_runtime::error::StoreError> {
/// let store = Arc::new(MemoryStore::new());
/// for _ in 0..3 {
///     let parked = store.submit(DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now())).await;
///     assert!(parked.is_kept());
/// }
/// let mut request = OperationRequest::new(Verb::Replay, Filter::all());
/// request.options.canary = true;
/// println!("{}", store.plan(request.clone()).await?); // what will probably happen
/// let operation = store.start(request, Actor::new("ada", "the quota was raised")).await?;
///
/// let runner = OperationRunner::new(Arc::clone(&store)).on("fetch", |job| async move {
///     // do the job again, for example by the annotated function itself
///     assert!(!job.letter_id.is_empty());
///     Ok::<(), ReplayError>(())
/// });
/// let done = runner.run(operation.id).await?;
/// assert_eq!(done.status, OperationStatus::Done);
/// assert_eq!(done.counts.to_string(), "3 recovered");
/// # Ok(())
/// # }
/// ```
pub struct OperationRunner {
    store: Arc<dyn BulkOperations>,
    handlers: Handlers,
    lease: Duration,
    name: String,
    actor: Option<Actor>,
    takes_over: bool,
    stop: Stopper,
    progress: Option<Progress>,
    /// Other work is driven by the same thread: no handler may block it.
    is_worked: bool,
}

impl OperationRunner {
    /// A runner without handlers. Discards and restores need none.
    pub fn new<S: BulkOperations + 'static>(store: S) -> Self {
        Self {
            store: Arc::new(store),
            handlers: Handlers::new(),
            lease: Duration::from_secs(60),
            name: format!("operations-{}", std::process::id()),
            actor: None,
            takes_over: false,
            stop: Stopper::default(),
            progress: None,
            is_worked: false,
        }
    }

    /// The runner of a worker, which ends with it.
    pub(super) fn of_worker(store: Arc<dyn BulkOperations>, handlers: Handlers, stop: Stopper) -> Self {
        let mut runner = Self::new(store).handlers(handlers);
        runner.stop = stop;
        runner.is_worked = true;
        runner
    }

    /// As [`Handlers::on`]. Members of kinds without a handler are blocked: they wait for a run that has one.
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

    /// As [`Handlers::on_blocking`].
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

    /// How long the operation, and each letter, is kept from others without a sign of life; 60 s by default. Extended while
    /// it runs.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Who runs it, for people to read; the process by default.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// In whose name letters change; by default in that of whoever started the operation, with their reason.
    #[must_use]
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = Some(actor);
        self
    }

    /// Takes the operation also from a runner whose lease has not ended: one that is known to be gone. If it is not, it
    /// begins nothing more.
    #[must_use]
    pub fn take_over(mut self) -> Self {
        self.takes_over = true;
        self
    }

    /// Called with the operation as it stands, whenever the runner has begun something, and at the end.
    #[must_use]
    pub fn progress(mut self, see: impl Fn(&Operation) + Send + Sync + 'static) -> Self {
        self.progress = Some(Box::new(see));
        self
    }

    /// A handle that stops a run: handlers that run are let to their end, and the operation waits for the next runner.
    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// Runs an operation; returns it as it is then: done, or paused, cancelled or pending, with a note where that says more.
    /// When this future is dropped, letters and operation are given back.
    ///
    /// An operation with a rate waits by tokio's timer where the feature `tokio` is on, and by a thread otherwise.
    ///
    /// # Errors
    /// `Conflict` when the operation cannot be taken, `StaleLease` when another runner took it, the others where the store
    /// fails: the next run goes on from there.
    pub async fn run(&self, op_id: impl Into<String>) -> Result<Operation, StoreError> {
        self.run_by(op_id.into(), Timer::Runtime).await
    }

    /// Runs an operation, for programs without an asynchronous runtime.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_blocking(&self, op_id: impl Into<String>) -> Result<Operation, StoreError> {
        let for_ever = Duration::from_secs(u64::from(u32::MAX));
        block_on(self.run_by(op_id.into(), Timer::Thread), for_ever).unwrap_or_else(|| {
            Err(StoreError::new(StoreErrorKind::Unavailable, "the operation did not end within a hundred years"))
        })
    }

    pub(super) async fn run_by(&self, op_id: String, timer: Timer) -> Result<Operation, StoreError> {
        let taking = self.store.take(op_id, self.name.clone(), self.lease, self.takes_over, self.takes_as());
        let operation = taking.await?;
        let actor = self.actor.clone().unwrap_or_else(|| operation.actor.clone());
        let hold = Hold { store: Arc::clone(&self.store), ticket: operation.ticket(), is_held: true };
        let heart = Heart::start(self.lease)?;
        let kept = heart.hold(self.extend(&hold.ticket));
        let run = Run { with: self, actor, ticket: hold.ticket.clone(), heart: &heart, kept: &kept, timer };
        let end = match operation.verb {
            Verb::Replay => run.replay(&operation).await,
            Verb::Discard | Verb::Restore { .. } => run.advance().await,
        };
        let left = run.leave(end, hold).await?;
        self.say(&left);
        Ok(left)
    }

    fn takes_as(&self) -> Actor {
        self.actor.clone().unwrap_or_else(|| Actor::new(self.name.clone(), ""))
    }

    /// A sign of life. It also ends when there is nothing to run any more.
    fn extend(&self, ticket: &OperationTicket) -> Extend {
        let (store, ticket, lease) = (Arc::clone(&self.store), ticket.clone(), self.lease);
        Arc::new(move || {
            let (store, ticket) = (Arc::clone(&store), ticket.clone());
            let kept: BoxFuture<'static, _> = Box::pin(async move {
                let operation = store.keep(ticket, lease).await?;
                if operation.status == OperationStatus::Running {
                    return Ok(());
                }
                Err(StoreError::new(StoreErrorKind::StaleLease, format!("the operation is {}", operation.status)))
            });
            kept
        })
    }

    fn say(&self, operation: &Operation) {
        if let Some(see) = &self.progress {
            see(operation);
        }
    }
}

impl fmt::Debug for OperationRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationRunner")
            .field("name", &self.name)
            .field("handlers", &self.handlers)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

/// An operation that is let go when it is dropped before its end.
struct Hold {
    store: Arc<dyn BulkOperations>,
    ticket: OperationTicket,
    is_held: bool,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.is_held {
            self.store.let_go(&self.ticket);
        }
    }
}

/// Why a run ends.
enum End {
    /// The operation's status says.
    Over,
    /// It was asked to stop.
    Asked,
    /// A handler says that no other could be started either.
    Stopped(String),
    /// The store failed, or another runner has it.
    Failed(StoreError),
}

/// How one letter's turn ended.
enum Turn {
    Ended,
    Stop(String),
    Failed(StoreError),
}

/// Members that were claimed, each under its lease from that moment on.
struct Got {
    operation: Operation,
    claimed: Vec<(Claimed, Lease)>,
    next: Next,
}

struct Run<'a> {
    with: &'a OperationRunner,
    actor: Actor,
    ticket: OperationTicket,
    heart: &'a Heart,
    kept: &'a Kept,
    timer: Timer,
}

impl Run<'_> {
    async fn replay(&self, operation: &Operation) -> End {
        let most = usize::try_from(operation.options.concurrency).unwrap_or(1).max(1);
        let threads = most > 1 || self.with.is_worked;
        let mut pace = Pace::new(operation.options.rate);
        let mut crew = Crew::new();
        let mut end = None;
        // The store has nothing to begin before something ends.
        let mut waits = false;
        let mut pending = operation.counts.pending();
        loop {
            for turn in crew.take_ended() {
                waits = false;
                match turn {
                    Turn::Ended => {}
                    Turn::Stop(why) => end = end.or(Some(End::Stopped(why))),
                    Turn::Failed(error) => end = end.or(Some(End::Failed(error))),
                }
            }
            if end.is_none() && self.with.stop.is_set() {
                end = Some(End::Asked);
            }
            if let Some(why) = end.take() {
                if crew.len() == 0 {
                    return why;
                }
                end = Some(why);
                crew.until(|_| Poll::Pending).await;
                continue;
            }
            let now = clock::monotonic();
            let wait = pace.wait(now);
            let free = most.saturating_sub(crew.len());
            // The end needs no pace. What is lost, paused or cancelled is learned by asking.
            if free > 0 && ((!waits && (wait.is_zero() || pending == 0)) || self.kept.is_lost()) {
                let limit = if pace.is_limited() { 1 } else { u32::try_from(free).unwrap_or(u32::MAX) };
                let got = crew.beside(self.claim(limit)).await;
                match got {
                    Err(error) => end = Some(End::Failed(error)),
                    Ok(got) => {
                        pending = got.operation.counts.pending();
                        for (claimed, lease) in got.claimed {
                            pace.started(now);
                            crew.add(self.turn(claimed, lease, threads));
                        }
                        match got.next {
                            Next::More => {}
                            Next::Wait => waits = true,
                            Next::Over => end = Some(End::Over),
                        }
                    }
                }
                continue;
            }
            let alarm = if waits {
                // Members may be under way elsewhere: those of a runner that died end with their leases.
                Some(self.with.lease / 3)
            } else if free > 0 {
                Some(wait)
            } else {
                None
            };
            self.wait(&mut crew, alarm).await;
            waits = false;
        }
    }

    /// Until a turn ends, the time is over, or the run is to end.
    async fn wait(&self, crew: &mut Crew<'_, Turn>, alarm: Option<Duration>) {
        let mut alarm = alarm.map(|wait| pause(wait, self.timer));
        crew.until(|cx| {
            let rings = alarm.as_mut().is_some_and(|alarm| alarm.as_mut().poll(cx).is_ready());
            let is_lost = self.kept.poll_lost(cx).is_ready();
            let is_asked = self.with.stop.poll_set(cx).is_ready();
            if rings || is_asked || (is_lost && alarm.is_some()) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    async fn claim(&self, limit: u32) -> Result<Got, StoreError> {
        let with = self.with;
        let mut claim = MemberClaim::new(with.handlers.kinds(), with.name.clone());
        claim.limit = limit;
        claim.lease = with.lease;
        claim.keep_alive = with.store.capabilities().heartbeats;
        let members = with.store.claim_members(self.ticket.clone(), claim, self.actor.clone()).await?;
        let Members { operation, claimed, next } = members;
        let store: Arc<dyn DeadLetterStore> = Arc::new(Arc::clone(&with.store));
        let leased = claimed.into_iter().map(|claimed| {
            let lease = Lease::new(Arc::clone(&store), &claimed);
            (claimed, lease)
        });
        let got = Got { operation, claimed: leased.collect(), next };
        with.say(&got.operation);
        Ok(got)
    }

    /// One letter's turn: its handler, and its result.
    async fn turn(&self, claimed: Claimed, mut lease: Lease, threads: bool) -> Turn {
        let with = self.with;
        let store = &with.store;
        let heart = (!store.capabilities().heartbeats).then_some(self.heart);
        let unreadable = match &claimed.payload {
            Payload::Unserializable(why) if is_without_payload(&claimed.payload) => Some(why.clone()),
            _ => None,
        };
        let ended = match (with.handlers.get(&claimed.row.kind), unreadable) {
            (_, Some(why)) => Ended::NotStarted { why, stops: false },
            (None, None) => Ended::NotStarted { why: "no handler for its kind".to_owned(), stops: false },
            (Some(handler), None) => {
                work(handler, claimed, &mut lease, &Ways { heart, lease: with.lease, threads }).await
            }
        };
        let written = match ended {
            Ended::Lost => return Turn::Ended,
            Ended::Result(result) => store.finish(result, self.actor.clone()).await.map(|_| Turn::Ended),
            Ended::NotStarted { why, stops } => {
                let (ticket, letter_id) = (self.ticket.clone(), lease.letter_id.clone());
                let given = with.store.not_started(ticket, letter_id, lease.fence, why.clone(), self.actor.clone());
                given.await.map(|_| if stops { Turn::Stop(why) } else { Turn::Ended })
            }
        };
        match written {
            Ok(turn) => {
                lease.is_over();
                turn
            }
            // Too late: the store has written that down, and who has the letter now.
            Err(error) if error.kind() == StoreErrorKind::StaleLease => {
                lease.is_over();
                Turn::Ended
            }
            // Whether it was written is not known; the lease is given back, and the store decides.
            Err(error) => Turn::Failed(error),
        }
    }

    async fn advance(&self) -> End {
        loop {
            if self.with.stop.is_set() {
                return End::Asked;
            }
            match self.with.store.advance(self.ticket.clone(), CHUNK, self.actor.clone()).await {
                Err(error) => return End::Failed(error),
                Ok(operation) => {
                    self.with.say(&operation);
                    if operation.status != OperationStatus::Running {
                        return End::Over;
                    }
                }
            }
        }
    }

    async fn leave(&self, end: End, mut hold: Hold) -> Result<Operation, StoreError> {
        let store = &self.with.store;
        let leave = match end {
            End::Failed(error) => return Err(error),
            End::Over => None,
            End::Asked => Some(Leave::Released),
            End::Stopped(why) => Some(Leave::Paused(why)),
        };
        let left = match leave {
            Some(leave) => store.leave(self.ticket.clone(), leave, self.actor.clone()).await.map(Some),
            None => store.operation(self.ticket.op_id.clone()).await,
        };
        let left = left?.ok_or_else(|| {
            StoreError::new(StoreErrorKind::Invalid, format!("operation {} is no longer there", self.ticket.op_id))
        })?;
        hold.is_held = false;
        Ok(left)
    }
}
