//! Time that moves only when it is told to.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::time::{Duration, Instant, SystemTime};

use super::virtual_elapsed;
use crate::clock;

thread_local! {
    static STOPPED: RefCell<Option<Stopped>> = const { RefCell::new(None) };
}

/// Where a thread's clocks stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped {
    pub(crate) monotonic: Instant,
    pub(crate) wall: SystemTime,
    moved: Duration,
}

/// While it lives, the runtime's clocks on this thread stand still, and move only by what they are told: for simulations,
/// where budgets and breakers see the time of the simulation. Nothing waits any shorter by it; see
/// [`VirtualWaits`](super::VirtualWaits) for that.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::Budget;
/// use retry_runtime::testing::ManualTime;
///
/// let time = ManualTime::start();
/// let budget = Budget::new().min_per_second(1).window(Duration::from_secs(1));
/// budget.take("busy").expect("one is there at the start").spend();
/// assert_eq!(budget.milli_tokens(), 0);
/// time.advance(Duration::from_millis(700));
/// assert_eq!(budget.milli_tokens(), 700);
/// ```
#[derive(Debug)]
#[must_use = "time stands still only while this lives"]
pub struct ManualTime {
    before: Option<Stopped>,
    /// Bound to the thread that started it.
    _thread: PhantomData<*const ()>,
}

impl ManualTime {
    /// Stops the clocks of this thread where they are now.
    pub fn start() -> Self {
        let (monotonic, wall) = (clock::monotonic(), clock::wall());
        // what virtual waits add is added at each reading
        let waited = virtual_elapsed();
        let stopped = Stopped {
            monotonic: monotonic.checked_sub(waited).unwrap_or(monotonic),
            wall: wall.checked_sub(waited).unwrap_or(wall),
            moved: Duration::ZERO,
        };
        Self { before: STOPPED.replace(Some(stopped)), _thread: PhantomData }
    }

    /// Moves the clocks on.
    pub fn advance(&self, by: Duration) {
        STOPPED.with_borrow_mut(|stopped| {
            if let Some(stopped) = stopped {
                stopped.moved = stopped.moved.saturating_add(by);
            }
        });
    }

    /// Moves the clocks to so long after the start; to an earlier time they do not go back.
    pub fn advance_to(&self, since_start: Duration) {
        self.advance(since_start.saturating_sub(self.elapsed()));
    }

    /// How far the clocks have moved since the start.
    pub fn elapsed(&self) -> Duration {
        STOPPED.with_borrow(|stopped| stopped.map(|stopped| stopped.moved).unwrap_or_default())
    }
}

impl Drop for ManualTime {
    fn drop(&mut self) {
        STOPPED.replace(self.before);
    }
}

/// Where this thread's clocks stand, unless they go.
pub(crate) fn stopped_time() -> Option<Stopped> {
    let stopped = STOPPED.with_borrow(|stopped| *stopped)?;
    Some(Stopped {
        monotonic: stopped.monotonic.checked_add(stopped.moved).unwrap_or(stopped.monotonic),
        wall: stopped.wall.checked_add(stopped.moved).unwrap_or(stopped.wall),
        moved: stopped.moved,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // 2.5: nothing else reads the time
    #[test]
    fn both_clocks_move_as_told_and_go_again_afterwards() {
        let begun = Instant::now();
        let time = ManualTime::start();
        let (monotonic, wall) = (clock::monotonic(), clock::wall());
        assert_eq!((clock::monotonic(), clock::wall()), (monotonic, wall));
        let hour = Duration::from_secs(3600);
        time.advance_to(hour);
        time.advance_to(Duration::from_secs(1));
        assert_eq!(time.elapsed(), hour);
        assert_eq!((clock::monotonic(), clock::wall()), (monotonic + hour, wall + hour));
        {
            let inner = ManualTime::start();
            inner.advance(hour);
            assert_eq!(clock::monotonic(), monotonic + 2 * hour);
        }
        assert_eq!(clock::monotonic(), monotonic + hour, "the outer one stands where it stood");
        std::thread::spawn(move || assert!(clock::monotonic() < monotonic + hour, "another thread's goes"))
            .join()
            .unwrap();
        drop(time);
        assert!(clock::monotonic().duration_since(begun) < hour);
    }
}
