//! Keeping leases alive: those of letters where the store does not do it itself, and those of operations.
//!
//! A thread of its own, not a task: a handler that blocks its thread keeps its lease too, and no runtime is needed.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::dead_letter::BoxFuture;
use crate::dead_letter::executor::block_on;
use crate::error::{StoreError, StoreErrorKind};

/// Extends a lease once. `StaleLease` says that it is lost.
pub(super) type Extend = Arc<dyn Fn() -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync>;

struct Held {
    extend: Extend,
    due: Instant,
    is_lost: bool,
    waker: Option<Waker>,
}

#[derive(Default)]
struct State {
    held: BTreeMap<u64, Held>,
    last: u64,
    is_over: bool,
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

/// Extends the leases that are held, every third of their length.
pub(super) struct Heart {
    shared: Arc<Shared>,
    every: Duration,
    thread: Option<JoinHandle<()>>,
}

impl Heart {
    pub(super) fn start(lease: Duration) -> Result<Self, StoreError> {
        let every = lease / 3;
        let shared = Arc::new(Shared { state: Mutex::default(), news: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("retry-heartbeat".to_owned())
            .spawn(move || beat(&of_thread, every))
            .map_err(|error| {
            let message = "cannot start the thread that keeps leases";
            StoreError::new(StoreErrorKind::Unavailable, message).with_source(error)
        })?;
        Ok(Self { shared, every, thread: Some(thread) })
    }

    /// Keeps a lease until what is returned is dropped.
    pub(super) fn hold(&self, extend: Extend) -> Kept {
        let mut state = self.shared.lock();
        state.last += 1;
        let number = state.last;
        let due = Instant::now() + self.every;
        state.held.insert(number, Held { extend, due, is_lost: false, waker: None });
        drop(state);
        self.shared.news.notify_all();
        Kept { shared: Arc::clone(&self.shared), number }
    }

    /// Runs a handler under its lease; `None`, and the handler is dropped, when the lease is lost.
    pub(super) async fn keep<T>(&self, extend: Extend, handler: impl Future<Output = T>) -> Option<T> {
        let kept = self.hold(extend);
        let mut handler = pin!(handler);
        poll_fn(|cx| match handler.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => kept.poll_lost(cx).map(|()| None),
        })
        .await
    }
}

/// A lease that is being kept.
pub(super) struct Kept {
    shared: Arc<Shared>,
    number: u64,
}

impl Kept {
    pub(super) fn is_lost(&self) -> bool {
        self.shared.lock().held.get(&self.number).is_none_or(|held| held.is_lost)
    }

    /// Ready when the lease is lost.
    pub(super) fn poll_lost(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        match state.held.get_mut(&self.number) {
            Some(held) if !held.is_lost => {
                held.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.shared.lock().held.remove(&self.number);
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

fn beat(shared: &Shared, every: Duration) {
    let mut state = shared.lock();
    while !state.is_over {
        let next = state.held.iter().filter(|(_, held)| !held.is_lost).min_by_key(|(_, held)| held.due);
        let Some((number, due)) = next.map(|(number, held)| (*number, held.due)) else {
            state = shared.news.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let left = due.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            state = shared.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let Some(held) = state.held.get_mut(&number) else { continue };
        held.due = Instant::now() + every;
        let extend = Arc::clone(&held.extend);
        drop(state);
        let extended = block_on(extend(), every);
        state = shared.lock();
        // Any other failure is tried again: two more beats fit into the lease.
        if let Some(Err(error)) = extended {
            if error.kind() == StoreErrorKind::StaleLease {
                if let Some(held) = state.held.get_mut(&number) {
                    held.is_lost = true;
                    if let Some(waker) = held.waker.take() {
                        waker.wake();
                    }
                }
            }
        }
    }
}
