//! Blocking waits that take no time.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::time::Duration;

thread_local! {
    static WAITS: RefCell<Option<Vec<Duration>>> = const { RefCell::new(None) };
}

/// While it lives, blocking waits on this thread are recorded instead of slept, and the runtime's clock on this thread
/// moves on by them. Async code uses tokio's paused clock instead.
///
/// ```
/// use retry_runtime::testing::VirtualWaits;
///
/// let waits = VirtualWaits::start();
/// // ... call blocking functions that retry ...
/// assert!(waits.recorded().is_empty());
/// ```
#[derive(Debug)]
#[must_use = "waits are virtual only while this lives"]
pub struct VirtualWaits {
    /// Bound to the thread that started it.
    _thread: PhantomData<*const ()>,
}

impl VirtualWaits {
    /// Starts recording on this thread, from nothing.
    pub fn start() -> Self {
        WAITS.with_borrow_mut(|waits| *waits = Some(Vec::new()));
        Self { _thread: PhantomData }
    }

    /// The waits so far, in order.
    pub fn recorded(&self) -> Vec<Duration> {
        WAITS.with_borrow(|waits| waits.clone().unwrap_or_default())
    }
}

impl Drop for VirtualWaits {
    fn drop(&mut self) {
        WAITS.with_borrow_mut(|waits| *waits = None);
    }
}

/// Records a wait; `false` when waits are real.
pub(crate) fn virtual_wait(wait: Duration) -> bool {
    WAITS.with_borrow_mut(|waits| waits.as_mut().map(|waits| waits.push(wait)).is_some())
}

/// How far this thread's clock has moved by virtual waits.
pub(crate) fn virtual_elapsed() -> Duration {
    WAITS.with_borrow(|waits| waits.iter().flatten().sum())
}
