//! Keeping a lease alive where the store does not do it itself.
//!
//! A thread of its own, not a task: a handler that blocks its thread keeps its lease too, and no runtime is needed.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::dead_letter::DeadLetterStore;
use crate::dead_letter::executor::block_on;
use crate::error::StoreErrorKind;

#[derive(Default)]
struct State {
    /// The lease to keep: letter and fence.
    held: Option<(String, u64)>,
    is_lost: bool,
    is_over: bool,
    waker: Option<Waker>,
}

struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Extends the lease that is held, every third of its length.
pub(super) struct Heart {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Heart {
    pub(super) fn start(store: Arc<dyn DeadLetterStore>, lease: Duration) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), news: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("retry-heartbeat".to_owned())
            .spawn(move || beat(&of_thread, &*store, lease))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Runs a handler under its lease; `None`, and the handler is dropped, when the lease is lost.
    pub(super) async fn keep<T>(&self, letter_id: &str, fence: u64, handler: impl Future<Output = T>) -> Option<T> {
        {
            let mut state = self.shared.lock();
            state.held = Some((letter_id.to_owned(), fence));
            state.is_lost = false;
        }
        let _held = LetGo(&self.shared);
        self.shared.news.notify_all();
        let mut handler = pin!(handler);
        poll_fn(|cx| {
            if let Poll::Ready(output) = handler.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            let mut state = self.shared.lock();
            if state.is_lost {
                return Poll::Ready(None);
            }
            state.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }
}

struct LetGo<'a>(&'a Shared);

impl Drop for LetGo<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.held = None;
        state.waker = None;
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.news.notify_all();
        if let Some(thread) = self.thread.take() {
            // It ends at once, or with the store's answer to its last extension.
            let _ended = thread.join();
        }
    }
}

fn beat(shared: &Shared, store: &dyn DeadLetterStore, lease: Duration) {
    let every = lease / 3;
    let mut state = shared.lock();
    while !state.is_over {
        let Some((letter_id, fence)) = state.held.clone() else {
            state = shared.news.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let waited = shared.news.wait_timeout(state, every).unwrap_or_else(PoisonError::into_inner);
        state = waited.0;
        let still_held = state.held.as_ref().is_some_and(|held| *held == (letter_id.clone(), fence));
        if !waited.1.timed_out() || !still_held {
            continue;
        }
        drop(state);
        let extended = block_on(store.extend(letter_id, fence, lease), every);
        state = shared.lock();
        // Any other failure is tried again: two more beats fit into the lease.
        if let Some(Err(error)) = extended {
            if error.kind() == StoreErrorKind::StaleLease {
                state.is_lost = true;
                state.held = None;
                if let Some(waker) = state.waker.take() {
                    waker.wake();
                }
            }
        }
    }
}
