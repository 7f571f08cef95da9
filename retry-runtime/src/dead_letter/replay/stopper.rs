//! Asking a run to end.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Sign {
    is_set: bool,
    waker: Option<Waker>,
}

/// Stops a [`Replayer`](crate::dead_letter::Replayer), an [`OperationRunner`](crate::dead_letter::OperationRunner) or a
/// [`ReplayWorker`](crate::dead_letter::ReplayWorker) after the letters it is at.
#[derive(Clone, Default)]
pub struct Stopper {
    sign: Arc<Mutex<Sign>>,
}

impl Stopper {
    /// Stops it; the report says so.
    pub fn stop(&self) {
        let waker = {
            let mut sign = self.sign.lock().unwrap_or_else(PoisonError::into_inner);
            sign.is_set = true;
            sign.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.sign.lock().unwrap_or_else(PoisonError::into_inner).is_set
    }

    /// Ready when it was asked for. One run waits at a time.
    pub(super) fn poll_set(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut sign = self.sign.lock().unwrap_or_else(PoisonError::into_inner);
        if sign.is_set {
            return Poll::Ready(());
        }
        sign.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopper").field("is_set", &self.is_set()).finish()
    }
}
