//! Waiting between attempts, and limiting one attempt.

use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "tokio")]
use std::task::Waker;
use std::task::{Context, Poll, ready};
use std::time::Duration;

#[cfg(feature = "tokio")]
use pin_project_lite::pin_project;
#[cfg(feature = "tokio")]
use tokio::task::coop::poll_proceed;

use crate::__private::site::Site;
use crate::refused::Elapsed;

/// Whether there is a default timer for async functions.
#[diagnostic::on_unimplemented(
    message = "an async `#[retry]` function needs a timer",
    label = "no timer here",
    note = "enable the feature `tokio` of retry-runtime, or name another runtime's: `sleep = path` with `fn(Duration) -> impl Future<Output = ()>`"
)]
pub trait Timed {}

#[cfg(feature = "tokio")]
impl Timed for () {}

/// The default timer: tokio's own future, so that nothing is added to its size.
///
/// # Panics
/// In tokio ("there is no reactor running"), when the call is not polled inside a tokio runtime with its time enabled, and
/// only then when there is something to wait for: `sleep = path` names the timer of another runtime.
#[cfg(feature = "tokio")]
#[inline]
pub fn sleep<T: Timed>(wait: Duration) -> tokio::time::Sleep {
    tokio::time::sleep(wait)
}

/// The default timer is missing: the bound says what to do.
#[cfg(not(feature = "tokio"))]
pub fn sleep<T: Timed>(_wait: Duration) -> std::future::Pending<()> {
    std::future::pending()
}

#[cfg(feature = "tokio")]
pin_project! {
    /// A wait by the default timer. One future for both kinds of waits: each that is awaited costs code in every call.
    #[project = PauseProjected]
    #[derive(Debug)]
    #[must_use = "a wait does nothing by itself"]
    pub enum Pause {
        Zero { yielded: YieldOnce },
        Slept { #[pin] sleep: tokio::time::Sleep },
    }
}

/// A wait between two attempts: one of no time yields once.
///
/// # Panics
/// As [`sleep`].
#[cfg(feature = "tokio")]
pub fn pause<T: Timed>(wait: Duration) -> Pause {
    if wait.is_zero() { Pause::Zero { yielded: yield_once() } } else { Pause::Slept { sleep: sleep::<T>(wait) } }
}

#[cfg(feature = "tokio")]
impl Future for Pause {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.project() {
            PauseProjected::Zero { yielded } => Pin::new(yielded).poll(cx),
            PauseProjected::Slept { sleep } => sleep.poll(cx),
        }
    }
}

/// The default timer is missing: the bound says what to do.
#[cfg(not(feature = "tokio"))]
pub fn pause<T: Timed>(_wait: Duration) -> std::future::Pending<()> {
    std::future::pending()
}

/// Whether a wait is zero. By value: a borrow of the wait would keep it in the future.
#[inline]
pub const fn is_zero(wait: Duration) -> bool {
    wait.is_zero()
}

/// What [`yield_once`] gives.
#[derive(Debug)]
pub struct YieldOnce(bool);

/// Yields to the scheduler once: what a zero wait still does.
#[inline]
pub const fn yield_once() -> YieldOnce {
    YieldOnce(false)
}

impl Future for YieldOnce {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// The blocking twin.
#[cold]
#[inline(never)]
pub fn sleep_blocking(site: &Site, wait: Duration) {
    #[cfg(not(feature = "test-util"))]
    if wait.is_zero() {
        return std::thread::yield_now();
    }
    slept_blocking(site, wait);
}

#[inline(never)]
fn slept_blocking(site: &Site, wait: Duration) {
    #[cfg(feature = "test-util")]
    tell_of_stalling(site, crate::testing::meant_wait().unwrap_or(wait));
    #[cfg(not(feature = "test-util"))]
    tell_of_stalling(site, wait);
    if wait.is_zero() {
        std::thread::yield_now();
    } else {
        std::thread::sleep(wait);
    }
}

/// 10.2: a thread that runs tasks of a tokio runtime runs none of them while this call waits on it.
#[cfg(feature = "tokio")]
fn tell_of_stalling(site: &Site, wait: Duration) {
    if !wait.is_zero() && runs_tasks() {
        site.warn_once("worker_stalled", || {
            format!(
                "this blocking call waits {wait:?} on a thread that runs tasks of a tokio runtime, none of which goes on \
                 meanwhile; make it `async`, or call it in `tokio::task::spawn_blocking`"
            )
        });
    }
}

/// Without tokio nothing is known of the threads that run tasks.
#[cfg(not(feature = "tokio"))]
const fn tell_of_stalling(_site: &Site, _wait: Duration) {}

/// Whether a task is being polled on this thread. Threads for blocking work belong to a runtime too, and may wait; what
/// tells them apart is that a task has a number of steps before it must yield. Takes them all, and gives them back.
#[cfg(feature = "tokio")]
fn runs_tasks() -> bool {
    /// More than a task ever has.
    const STEPS: u32 = 1 << 10;

    if tokio::runtime::Handle::try_current().is_err() {
        return false;
    }
    let mut cx = Context::from_waker(Waker::noop());
    // dropped at the end, the first one gives back all
    let Poll::Ready(_first) = poll_proceed(&mut cx) else { return true };
    (0..STEPS).any(|_| match poll_proceed(&mut cx) {
        Poll::Ready(step) => {
            step.made_progress();
            false
        }
        Poll::Pending => true,
    })
}

/// Polls an attempt, then its timer: an attempt that is ready is never thrown away.
pub fn poll_limited<A: Future, S: Future>(
    attempt: Pin<&mut A>,
    timer: Pin<&mut S>,
    limit: Duration,
    cx: &mut Context<'_>,
) -> Poll<Result<A::Output, Elapsed>> {
    if let Poll::Ready(outcome) = attempt.poll(cx) {
        return Poll::Ready(Ok(outcome));
    }
    ready!(timer.poll(cx));
    Poll::Ready(Err(Elapsed::new(limit)))
}

#[cfg(all(test, feature = "tokio"))]
mod tests {
    use super::*;

    // A retried future is as large as a loop by hand that awaits tokio's own.
    #[test]
    fn both_kinds_of_waits_are_as_large_as_tokio_s_timer() {
        assert_eq!(size_of::<Pause>(), size_of::<tokio::time::Sleep>());
    }
}
