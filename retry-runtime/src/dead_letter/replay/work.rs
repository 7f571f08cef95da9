//! One job done again: its handler in its scope and under its lease, and what that makes of the letter.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use super::handlers::Handler;
use super::heart::Heart;
use super::job::{HandlerEnd, ReplayError, ReplayJob, Said};
use crate::dead_letter::{Claimed, DeadLetterStore, Failure, Finish, ReplayOutcome, ReplayScope};
use crate::panics;
use crate::reply::Reply;
use crate::stop::StopReason;

/// A claimed letter's lease, given back when it is dropped before its end.
pub(super) struct Lease {
    store: Arc<dyn DeadLetterStore>,
    pub(super) letter_id: String,
    pub(super) fence: u64,
    is_held: bool,
    /// A thread works under it that cannot be stopped. Of the two, it and this, the second one to go gives the lease back.
    worker: Option<Arc<AtomicBool>>,
}

impl Lease {
    pub(super) fn new(store: Arc<dyn DeadLetterStore>, claimed: &Claimed) -> Self {
        let (letter_id, fence) = (claimed.row.letter_id.clone(), claimed.row.fence);
        Self { store, letter_id, fence, is_held: true, worker: None }
    }

    /// It is over: by a result, a release, or because it was lost.
    pub(super) fn is_over(&mut self) {
        self.is_held = false;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_held && self.worker.take().is_none_or(|worker| worker.swap(true, Ordering::SeqCst)) {
            self.store.give_back(&self.letter_id, self.fence);
        }
    }
}

/// How the work under a lease ended.
pub(super) enum Ended {
    /// With this to be written.
    Result(Finish),
    /// It did not begin; whether the whole run stops.
    NotStarted { why: String, stops: bool },
    /// The lease was lost, and the handler dropped.
    Lost,
}

/// How handlers run.
pub(super) struct Ways<'a> {
    /// Where the store does not keep leases itself.
    pub(super) heart: Option<&'a Heart>,
    pub(super) lease: Duration,
    /// Blocking handlers get a thread each.
    pub(super) threads: bool,
}

/// Does the job of a claimed letter.
pub(super) async fn work(handler: &Handler, claimed: Claimed, lease: &mut Lease, ways: &Ways<'_>) -> Ended {
    let scope = ReplayScope::of(&claimed.row);
    let began = crate::clock::monotonic();
    let Some(ended) = handle(handler, ReplayJob::of(claimed), scope.clone(), lease, ways).await else {
        lease.is_over();
        return Ended::Lost;
    };
    let mut said = scope.take_report();
    let outcome = match ended.map_err(ReplayError::into_said) {
        // A call inside gave the job up, whatever its caller made of it: a rejected `Ok` value, or an ignored error. (A
        // call that was dropped has no say: the handler went another way.)
        Ok(()) => match said.failure.take_if(|failure| failure.reason != StopReason::Dropped) {
            Some(failure) => ReplayOutcome::Failed(failure),
            None => ReplayOutcome::Recovered,
        },
        Err(Said { end: HandlerEnd::NotStarted { why, stops }, .. }) => return Ended::NotStarted { why, stops },
        Err(Said { end: HandlerEnd::Gone(failure), attempts, history }) => {
            said.or(attempts, history);
            ReplayOutcome::Gone(failure)
        }
        Err(Said { end: HandlerEnd::Failed(failure), attempts, history }) => {
            said.or(attempts, history);
            // What the annotated function said of its own end is better than what the handler made of it.
            ReplayOutcome::Failed(said.failure.take().unwrap_or(failure))
        }
    };
    let mut result = Finish::new(lease.letter_id.clone(), lease.fence, outcome);
    result.attempts = said.attempts.max(1);
    result.history = said.history;
    result.took = crate::clock::monotonic().saturating_duration_since(began);
    Ended::Result(result)
}

/// Runs the handler in its scope and under its lease; `None` when the lease was lost.
async fn handle(
    handler: &Handler,
    job: ReplayJob,
    scope: ReplayScope,
    lease: &mut Lease,
    ways: &Ways<'_>,
) -> Option<Result<(), ReplayError>> {
    let work = match handler {
        Handler::Blocking(handler) if ways.threads => on_a_thread(Arc::clone(handler), job, scope, lease),
        Handler::Blocking(handler) => {
            let handler = Arc::clone(handler);
            let blocking = async move { caught(|| handler(job)).unwrap_or_else(Err) };
            Box::pin(scope.run(blocking))
        }
        Handler::Asynchronous(handler) => {
            let handler = Arc::clone(handler);
            Box::pin(scope.run(async move {
                let mut future = pin!(caught(|| handler(job))?);
                poll_fn(|cx| caught(|| future.as_mut().poll(cx)).unwrap_or_else(|panic| Poll::Ready(Err(panic)))).await
            }))
        }
    };
    let Some(heart) = ways.heart else { return Some(work.await) };
    let (store, letter_id, fence) = (Arc::clone(&lease.store), lease.letter_id.clone(), lease.fence);
    let length = ways.lease;
    let extend = move || {
        let (store, letter_id) = (Arc::clone(&store), letter_id.clone());
        let extended: Beat = Box::pin(async move { store.extend(letter_id, fence, length).await.map(drop) });
        extended
    };
    heart.keep(Arc::new(extend), work).await
}

type Beat = crate::dead_letter::BoxFuture<'static, Result<(), crate::error::StoreError>>;
type Work = crate::dead_letter::BoxFuture<'static, Result<(), ReplayError>>;

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, ReplayError> {
    panics::caught(work).map_err(|text| ReplayError::panicked(&text))
}

/// A blocking handler on a thread of its own. When the future is dropped, the thread works on, and gives the lease back at
/// its end: until then nobody else is to do the same work.
fn on_a_thread(
    handler: Arc<dyn Fn(ReplayJob) -> Result<(), ReplayError> + Send + Sync>,
    job: ReplayJob,
    scope: ReplayScope,
    lease: &mut Lease,
) -> Work {
    let one_is_gone = Arc::new(AtomicBool::new(false));
    let (store, letter_id, fence) = (Arc::clone(&lease.store), lease.letter_id.clone(), lease.fence);
    let of_thread = Arc::clone(&one_is_gone);
    let (answer, reply) = Reply::pair(|| Err(ReplayError::failed(Failure::from("the handler's thread is gone"))));
    let thread = thread::Builder::new().name("retry-replay".to_owned()).spawn(move || {
        answer.send(scope.run_blocking(|| caught(|| handler(job)).unwrap_or_else(Err)));
        if of_thread.swap(true, Ordering::SeqCst) {
            store.give_back(&letter_id, fence);
        }
    });
    match thread {
        Ok(_) => {
            lease.worker = Some(one_is_gone);
            Box::pin(reply)
        }
        Err(error) => Box::pin(async move { Err(ReplayError::not_started(format!("no thread for it: {error}"))) }),
    }
}
