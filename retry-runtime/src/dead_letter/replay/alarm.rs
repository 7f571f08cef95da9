//! Waiting, with and without a runtime.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::dead_letter::BoxFuture;
use crate::reply::Reply;

/// Whose timer a run waits by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Tokio's where the feature is on: the run is awaited in its runtime.
    Runtime,
    /// A thread of its own.
    Thread,
}

/// Ready after the time.
pub(super) fn pause(wait: Duration, timer: Timer) -> BoxFuture<'static, ()> {
    #[cfg(feature = "tokio")]
    if timer == Timer::Runtime {
        return Box::pin(tokio::time::sleep(wait));
    }
    let _ = timer;
    #[cfg(feature = "test-util")]
    if crate::testing::virtual_wait(wait) {
        return Box::pin(std::future::ready(()));
    }
    let gone = Arc::new((Mutex::new(false), Condvar::new()));
    let (answer, reply) = Reply::pair(|| ());
    let of_thread = Arc::clone(&gone);
    let thread = thread::Builder::new().name("retry-alarm".to_owned()).spawn(move || {
        let end = Instant::now().checked_add(wait);
        let mut is_gone = of_thread.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_gone {
            let left = end.map_or(wait, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            is_gone = of_thread.1.wait_timeout(is_gone, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        answer.send(());
    });
    if thread.is_err() {
        // Too many threads: this one has to wait.
        thread::sleep(wait);
    }
    let guard = Gone(gone);
    Box::pin(async move {
        reply.await;
        drop(guard);
    })
}

/// Nobody waits any more: the thread ends at once.
struct Gone(Arc<(Mutex<bool>, Condvar)>);

impl Drop for Gone {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}
