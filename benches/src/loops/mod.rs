//! The same loops by everybody: three attempts at most, a wait of a second that doubles, whatever is permanent is not retried.
//!
//! A file for each contender, so that who doubts a figure reads ten lines. "hand" is what everybody is compared with.

#[cfg(feature = "peers")]
mod backoff;
#[cfg(feature = "peers")]
mod backon;
#[cfg(feature = "peers")]
mod backon_macros;
mod builder;
mod hand;
mod hand_in_a_block;
mod ours;
mod ours_with;
#[cfg(feature = "peers")]
mod relentless;
mod retrying;
#[cfg(feature = "peers")]
mod tokio_retry;
#[cfg(feature = "peers")]
mod tokio_retry2;
#[cfg(feature = "peers")]
mod tower;
#[cfg(feature = "peers")]
mod tryhard;

use std::future::{Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use retry_runtime::{Classify, Refused};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// What an attempt ends with.
pub type Outcome = Result<u32, Failure>;

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Classify)]
pub enum Failure {
    /// Later it may work.
    #[classify(retryable)]
    Busy,
    /// It never will.
    #[classify(permanent)]
    Denied,
}

impl Failure {
    /// What peers ask, who have no classifier.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Busy)
    }
}

/// What a breaker needs that answers in the work's place.
impl From<Refused> for Failure {
    fn from(_: Refused) -> Self {
        Self::Denied
    }
}

/// The retries after the first attempt.
pub const RETRIES: u32 = 2;
/// The first wait.
pub const SECOND: Duration = Duration::from_secs(1);

/// What is attempted: it fails so often, succeeds once, and begins anew.
#[derive(Debug)]
pub struct Work {
    failures: u32,
    left: AtomicU32,
    failure: Failure,
}

impl Work {
    /// Fails so often before it succeeds.
    #[must_use]
    pub const fn failing(failures: u32) -> Self {
        Self { failures, left: AtomicU32::new(failures), failure: Failure::Busy }
    }

    /// Whether three attempts are enough.
    #[must_use]
    pub const fn succeeds(&self) -> bool {
        self.failures <= RETRIES
    }

    /// How many failures there are before the next success.
    #[must_use]
    pub fn left(&self) -> u32 {
        self.left.load(Relaxed)
    }

    /// One attempt, ready at once.
    #[allow(clippy::unused_async)] // as users write it
    #[inline]
    pub async fn call(&self) -> Outcome {
        self.attempt()
    }

    /// One attempt.
    #[inline]
    pub fn attempt(&self) -> Outcome {
        let left = self.left.load(Relaxed);
        if left == 0 {
            self.left.store(self.failures, Relaxed);
            Ok(self.failures)
        } else {
            self.left.store(left - 1, Relaxed);
            Err(self.failure)
        }
    }
}

/// A loop as a plain function.
pub type Run = fn(&Work) -> Outcome;

/// Who retries, and how. What a contender cannot do is absent.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// As the report calls it.
    pub name: &'static str,
    /// Waits by tokio's timer.
    pub on_tokio: Option<OnTokio>,
    /// Its waits are over at once.
    pub ready: Option<Run>,
    /// Blocks its thread; its waits take no time.
    pub blocking: Option<Run>,
}

/// A loop that waits by tokio's timer.
#[derive(Clone, Copy, Debug)]
pub struct OnTokio {
    /// Polled once, outside of tokio: where nothing waits.
    pub now: Run,
    /// On a paused clock.
    pub paused: Run,
    /// Bytes of its future.
    pub size: fn() -> usize,
    /// As a task that fails each of its attempts.
    pub spawn: fn() -> JoinHandle<Outcome>,
}

/// What is known of an async function by its path.
macro_rules! on_tokio {
    ($call:path) => {
        $crate::loops::OnTokio {
            now: |work| $crate::loops::now($call(work)),
            paused: |work| $crate::loops::paused($call(work)),
            size: || size_of_val(&$call(&$crate::loops::Work::failing(0))),
            spawn: || {
                tokio::spawn(async {
                    let work = $crate::loops::Work::failing(u32::MAX);
                    $call(&work).await
                })
            },
        }
    };
}
use on_tokio;

pub(crate) use ours_with::LETTER;

/// Everybody: first those that are compared with.
#[must_use]
pub fn contenders() -> Vec<Contender> {
    let mut all = vec![hand::CONTENDER, hand_in_a_block::CONTENDER];
    all.extend([ours::CONTENDER, retrying::CONTENDER, builder::CONTENDER]);
    all.extend(ours_with::CONTENDERS);
    #[cfg(feature = "peers")]
    all.extend([
        backon::CONTENDER,
        backon_macros::CONTENDER,
        tokio_retry::CONTENDER,
        tokio_retry2::CONTENDER,
        tryhard::CONTENDER,
        tower::CONTENDER,
        relentless::CONTENDER,
        backoff::CONTENDER,
    ]);
    all
}

/// The value of a future that is ready when first polled.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waited"),
    }
}

thread_local! {
    static PAUSED: Runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
}

/// The value of a future, waits by tokio's timer included: its clock jumps.
fn paused<T>(future: impl Future<Output = T>) -> T {
    PAUSED.with(|runtime| runtime.block_on(future))
}

/// So many tasks that fail each of their attempts, all at once, on one thread and a paused clock.
pub fn crowd(loops: &OnTokio, tasks: usize) {
    paused(async {
        let tasks: Vec<_> = (0..tasks).map(|_| (loops.spawn)()).collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Err(Failure::Busy));
        }
    });
}

/// A wait that is over at once. How long it would have been has to be found out all the same, as for a timer.
fn at_once(wait: Duration) -> Ready<()> {
    black_box(wait);
    ready(())
}
