//! The smallest executor: one future, on this thread, with a time limit.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives a future to its end on this thread; `None` when `limit` passes first (the future is dropped then).
pub(crate) fn block_on<F: Future>(future: F, limit: Duration) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let start = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
        let left = limit.checked_sub(start.elapsed())?;
        // A wake before this line makes the park return at once.
        thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;

    #[test]
    fn waits_for_another_thread_and_gives_up_at_the_limit() {
        let (answer, reply) = Reply::pair(|| 0);
        let thread = thread::spawn(move || answer.send(7));
        assert_eq!(block_on(reply, Duration::from_secs(30)), Some(7));
        assert!(thread.join().is_ok());
        assert_eq!(block_on(std::future::pending::<()>(), Duration::ZERO), None);
    }
}
