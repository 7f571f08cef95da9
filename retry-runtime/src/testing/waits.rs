//! Waits that take no time.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Retries without waiting, in this task or on this thread, while the guard lives: see [`VirtualWaits`], of which it is the
/// short name.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::testing::no_waits;
/// use retry_runtime::{Policy, Retry, Verdict};
///
/// let waits = no_waits();
/// let _failed = Retry::new(Policy::new()).classify(|_: &()| Verdict::retryable("busy")).run_blocking(|| Err::<(), ()>(()));
/// assert_eq!(waits.recorded(), [Duration::from_secs(1), Duration::from_secs(2)]);
/// ```
#[must_use = "waits take no time only while the guard lives"]
pub fn no_waits() -> VirtualWaits {
    VirtualWaits::start()
}

/// A virtual clock: while it lives, waits between attempts are recorded instead of waited, async and blocking ones, and the
/// runtime's clock moves on by them, so that deadlines, budgets and breakers see them pass.
///
/// It holds for the task that starts it, where it is started in a task that tokio has spawned, on whichever thread that
/// task runs; else for the thread that starts it, with all that this thread runs (in a `#[tokio::test]` of one thread that
/// is every task). Other tasks and threads wait as ever, so that tests can run side by side.
///
/// Only the waits between attempts are virtual. What an operation itself waits for, and the time limit of an attempt, go by
/// tokio's clock; a paused one (`start_paused = true`) moves beside this one.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::testing::VirtualWaits;
/// use retry_runtime::{Classify, retry};
///
/// #[derive(Debug, Classify)]
/// #[classify(retryable)]
/// struct Busy;
///
/// #[retry(max_retries = 9, base_delay = "1h", max_delay = "1d", deadline = "4h")]
/// async fn fetch() -> Result<(), Busy> {
///     Err(Busy)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let waits = VirtualWaits::start();
/// let _failed = fetch().await;
/// // the third wait, of four hours, would have passed the deadline
/// assert_eq!(waits.recorded(), [Duration::from_secs(3600), Duration::from_secs(7200)]);
/// # }
/// ```
#[derive(Debug)]
#[must_use = "waits are virtual only while this lives"]
pub struct VirtualWaits {
    number: usize,
}

/// Those that live, in the order of their starts.
static LIVING: Mutex<Vec<Living>> = Mutex::new(Vec::new());
/// How many: nothing else is asked where there is none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

struct Living {
    number: usize,
    place: Place,
    waits: Vec<Duration>,
    /// How far the clock has moved.
    moved: Duration,
}

/// Where waits are virtual.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    #[cfg(feature = "tokio")]
    Task(tokio::task::Id),
    Thread(ThreadId),
}

impl VirtualWaits {
    /// Starts recording here, from nothing. Where one lives here already, the newer one records until it ends.
    pub fn start() -> Self {
        static NUMBERS: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "tokio")]
        let place = tokio::task::try_id().map_or_else(|| Place::Thread(thread::current().id()), Place::Task);
        #[cfg(not(feature = "tokio"))]
        let place = Place::Thread(thread::current().id());
        living(|living| living.push(Living { number, place, waits: Vec::new(), moved: Duration::ZERO }));
        COUNT.fetch_add(1, Ordering::Release);
        Self { number }
    }

    /// The waits so far, in order.
    pub fn recorded(&self) -> Vec<Duration> {
        living(|living| living.iter().find(|one| one.number == self.number).map(|one| one.waits.clone()))
            .unwrap_or_default()
    }
}

impl Drop for VirtualWaits {
    fn drop(&mut self) {
        living(|living| {
            let Some(at) = living.iter().position(|one| one.number == self.number) else { return };
            let ended = living.remove(at);
            // for the one it stood in for, that time has passed
            if let Some(outer) = living.iter_mut().rev().find(|one| one.place == ended.place) {
                outer.moved = outer.moved.saturating_add(ended.moved);
            }
        });
        COUNT.fetch_sub(1, Ordering::Release);
    }
}

fn living<T>(read: impl FnOnce(&mut Vec<Living>) -> T) -> T {
    read(&mut LIVING.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The places that the caller stands in, the nearest first.
fn here() -> impl Iterator<Item = Place> {
    #[cfg(feature = "tokio")]
    let task = tokio::task::try_id().map(Place::Task);
    #[cfg(not(feature = "tokio"))]
    let task = None;
    task.into_iter().chain([Place::Thread(thread::current().id())])
}

thread_local! {
    /// The wait that was made virtual last: a blocking call comes by next, on the same thread.
    static MEANT: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Records a wait; `false` when waits are real here.
pub(crate) fn virtual_wait(wait: Duration) -> bool {
    let is_virtual = with_nearest(|one| {
        one.waits.push(wait);
        one.moved = one.moved.saturating_add(wait);
    });
    MEANT.set(is_virtual.then_some(wait));
    is_virtual
}

/// How long a wait of no time was meant to be.
pub(crate) fn meant_wait() -> Option<Duration> {
    MEANT.take()
}

/// Time that passes and is no wait of a retry; `false` when time is real here.
pub(crate) fn virtual_time(passed: Duration) -> bool {
    with_nearest(|one| one.moved = one.moved.saturating_add(passed))
}

fn with_nearest(change: impl FnOnce(&mut Living)) -> bool {
    if COUNT.load(Ordering::Acquire) == 0 {
        return false;
    }
    living(|living| {
        let nearest = here().find_map(|place| living.iter().rposition(|one| one.place == place));
        nearest.and_then(|at| living.get_mut(at)).map(change).is_some()
    })
}

/// How far the clock has moved here by virtual waits.
pub(crate) fn virtual_elapsed() -> Duration {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Duration::ZERO;
    }
    living(|living| {
        let mine = here().flat_map(|place| living.iter().filter(move |one| one.place == place));
        mine.map(|one| one.moved).fold(Duration::ZERO, Duration::saturating_add)
    })
}
