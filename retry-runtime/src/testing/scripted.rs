//! Operations that play a script.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// An operation that gives these outcomes, one a call: see [`Scripted`].
///
/// ```
/// use retry_runtime::testing::{no_waits, scripted};
/// use retry_runtime::{Policy, Retry, Verdict};
///
/// let _quick = no_waits();
/// let operation = scripted([Err("busy"), Err("busy"), Ok(3)]);
/// let retry = Retry::new(Policy::new()).classify(|_: &&str| Verdict::retryable("busy"));
/// assert_eq!(retry.run_blocking(|| operation.call()), Ok(3));
/// assert_eq!(operation.calls(), 3);
/// ```
pub fn scripted<T, E, I>(outcomes: I) -> Scripted<T, E>
where
    I: IntoIterator<Item = Result<T, E>>,
    I::IntoIter: Send + 'static,
{
    Scripted { outcomes: Mutex::new(Box::new(outcomes.into_iter())), calls: AtomicU32::new(0) }
}

/// An operation that plays a script: an outcome for each call, in order. Threads and tasks may share it.
///
/// A script without an end is an iterator without one:
///
/// ```
/// use retry_runtime::testing::scripted;
///
/// let down = scripted(std::iter::repeat_with(|| Err::<(), _>("down")));
/// assert_eq!((down.call(), down.call()), (Err("down"), Err("down")));
/// ```
pub struct Scripted<T, E> {
    outcomes: Mutex<Box<dyn Iterator<Item = Result<T, E>> + Send>>,
    calls: AtomicU32,
}

impl<T, E> Scripted<T, E> {
    /// The next outcome.
    ///
    /// # Panics
    /// When the script has ended: the code under test called more often than the test expects.
    ///
    /// # Errors
    /// Those of the script.
    #[track_caller]
    #[allow(clippy::panic)] // a test fails by panicking
    pub fn call(&self) -> Result<T, E> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let outcome = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).next();
        outcome.unwrap_or_else(|| panic!("call {call} of an operation whose script has {} outcomes", call - 1))
    }

    /// The next outcome, of an async operation: the script is played when the future is polled.
    ///
    /// # Panics
    /// As [`call`](Self::call).
    ///
    /// # Errors
    /// Those of the script.
    #[allow(clippy::unused_async)] // a future is what async code asks for
    pub async fn call_async(&self) -> Result<T, E> {
        self.call()
    }

    /// How often it was called.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Fails the test where outcomes are left over.
    ///
    /// # Panics
    /// When the code under test called less often than the test expects.
    #[track_caller]
    #[allow(clippy::panic)] // a test fails by panicking
    pub fn assert_played(&self) {
        let left = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).next().is_some();
        assert!(!left, "the script goes on after {} calls", self.calls());
    }
}

impl<T, E> fmt::Debug for Scripted<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("calls", &self.calls()).finish_non_exhaustive()
    }
}
