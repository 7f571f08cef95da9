//! An answer that comes later: awaited in async code, waited for in blocking code, or ignored.
//!
//! One type serves all three because handing work over must never depend on the caller: dropping a [`Reply`]
//! changes nothing about the work behind it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::panics::caught;

struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
    then: Option<Box<dyn FnOnce(T) + Send>>,
    answered: bool,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // The state is valid at every step, so a panic elsewhere cannot have left it half-written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The receiving end: a future, or a blocking wait with a time limit.
#[must_use = "the outcome is known only when the reply is awaited or waited for"]
pub struct Reply<T> {
    shared: Arc<Shared<T>>,
}

/// The answering end. Dropped without an answer, it answers with what it was given as a fallback.
pub struct Answer<T> {
    shared: Arc<Shared<T>>,
    unanswered: Option<Box<dyn FnOnce() -> T + Send>>,
}

impl<T> Reply<T> {
    /// A reply and the end that answers it. `unanswered` makes the answer when the other end is dropped silently, so
    /// that nobody waits for ever.
    pub fn pair(unanswered: impl FnOnce() -> T + Send + 'static) -> (Answer<T>, Self) {
        let shared = Arc::new(Shared {
            state: Mutex::new(State { value: None, waker: None, then: None, answered: false }),
            ready: Condvar::new(),
        });
        let answer = Answer { shared: Arc::clone(&shared), unanswered: Some(Box::new(unanswered)) };
        (answer, Self { shared })
    }

    /// A reply that is there already.
    pub fn ready(value: T) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State { value: Some(value), waker: None, then: None, answered: true }),
                ready: Condvar::new(),
            }),
        }
    }

    /// Does something with the answer when it is there: now, or on the thread that answers, for whoever does not wait.
    pub(crate) fn then(self, then: impl FnOnce(T) + Send + 'static) {
        let mut state = self.shared.lock();
        match state.value.take() {
            Some(value) => {
                drop(state);
                then(value);
            }
            None => state.then = Some(Box::new(then)),
        }
    }

    /// Blocks until the answer is there, at most `limit`; gives the reply back when the time is up.
    ///
    /// # Errors
    /// The reply itself, when `limit` passed without an answer.
    pub fn wait(self, limit: Duration) -> Result<T, Self> {
        let end = Instant::now().checked_add(limit);
        let mut state = self.shared.lock();
        loop {
            if let Some(value) = state.value.take() {
                return Ok(value);
            }
            let left = match end {
                Some(end) => end.saturating_duration_since(Instant::now()),
                None => limit,
            };
            if left.is_zero() {
                drop(state);
                return Err(self);
            }
            state = self.shared.ready.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<T> Future for Reply<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut state = self.shared.lock();
        if let Some(value) = state.value.take() {
            return Poll::Ready(value);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T> Answer<T> {
    /// Gives the answer.
    pub fn send(mut self, value: T) {
        self.unanswered = None;
        self.put(value);
    }

    fn put(&self, value: T) {
        let waker = {
            let mut state = self.shared.lock();
            if state.answered {
                return;
            }
            state.answered = true;
            if let Some(then) = state.then.take() {
                drop(state);
                // its panic must not end the thread that answers everybody else
                let _done = caught(|| then(value));
                return;
            }
            state.value = Some(value);
            state.waker.take()
        };
        self.shared.ready.notify_all();
        if let Some(waker) = waker {
            // A waker is the code of whoever waits. Its panic must not end the thread that answers everybody else.
            let _woken = caught(|| waker.wake());
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        if let Some(make) = self.unanswered.take() {
            self.put(make());
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_an_answer_of_another_thread() {
        let (answer, reply) = Reply::pair(|| 0);
        let thread = std::thread::spawn(move || answer.send(7));
        assert_eq!(reply.wait(Duration::from_secs(30)).ok(), Some(7));
        assert!(thread.join().is_ok());
    }

    #[test]
    fn a_dropped_answer_is_the_fallback() {
        let (answer, reply) = Reply::pair(|| 9);
        drop(answer);
        assert_eq!(reply.wait(Duration::ZERO).ok(), Some(9));
    }

    #[test]
    fn a_time_limit_gives_the_reply_back() {
        let (answer, reply) = Reply::pair(|| 0);
        let Err(reply) = reply.wait(Duration::ZERO) else { panic!("answered by nobody") };
        answer.send(3);
        assert_eq!(reply.wait(Duration::ZERO).ok(), Some(3));
    }

    struct Woken(std::sync::atomic::AtomicBool);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }

    #[test]
    fn whoever_waits_is_woken_by_an_answer_and_by_its_absence() {
        for answered in [true, false] {
            let woken = Arc::new(Woken(false.into()));
            let waker = Waker::from(Arc::clone(&woken));
            let mut cx = Context::from_waker(&waker);
            let (answer, mut reply) = Reply::pair(|| 1);
            assert!(Pin::new(&mut reply).poll(&mut cx).is_pending());
            if answered {
                answer.send(1);
            } else {
                drop(answer);
            }
            assert!(woken.0.load(std::sync::atomic::Ordering::SeqCst));
            assert_eq!(Pin::new(&mut reply).poll(&mut cx), Poll::Ready(1));
        }
    }

    #[test]
    fn what_is_to_be_done_then_is_done_once_the_answer_is_there() {
        let (done, seen) = std::sync::mpsc::channel();
        let then = |done: std::sync::mpsc::Sender<u32>| move |value| done.send(value).unwrap_or_default();
        Reply::ready(1).then(then(done.clone()));
        assert_eq!(seen.try_recv(), Ok(1));
        let (answer, reply) = Reply::pair(|| 0);
        reply.then(then(done.clone()));
        assert!(seen.try_recv().is_err());
        answer.send(2);
        assert_eq!(seen.try_recv(), Ok(2));
        let (unanswered, reply) = Reply::pair(|| 3);
        reply.then(then(done));
        drop(unanswered);
        assert_eq!(seen.try_recv(), Ok(3));
        // a panic there is nobody else's
        let (answer, reply) = Reply::pair(|| 0);
        reply.then(|_| std::panic::resume_unwind(Box::new("then")));
        answer.send(4);
    }

    #[tokio::test]
    async fn is_a_future() {
        let (answer, reply) = Reply::pair(|| 0);
        let task = tokio::spawn(reply);
        answer.send(5);
        assert_eq!(task.await.ok(), Some(5));
    }
}
