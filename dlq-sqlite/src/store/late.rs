//! Letters that come after the writer's end, from drop guards mostly: each is spilled by a thread of its own, since nobody
//! may be blocked by it; and whoever closes the store, or drops its last handle, waits for those threads.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::closed;
use crate::worker::queue::Pending;
use crate::worker::{self, Shared};

/// The letters on their way to the spill.
#[derive(Debug, Default)]
pub(super) struct Late {
    running: Mutex<usize>,
    none: Condvar,
}

/// One of them; its end is counted also when its thread panics.
struct Running(Arc<Late>);

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.none.notify_all();
    }
}

impl Late {
    /// Spills a letter, and does not wait for it.
    pub(super) fn spill(self: &Arc<Self>, shared: &Arc<Shared>, pending: Box<Pending>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        let waiting = Arc::new(Mutex::new(Some((pending, Running(Arc::clone(self))))));
        let (of_thread, shared_there) = (Arc::clone(&waiting), Arc::clone(shared));
        let work = move || spill(&shared_there, &of_thread);
        if std::thread::Builder::new().name("dlq-sqlite-spill".to_owned()).spawn(work).is_err() {
            // Late is better than lost.
            spill(shared, &waiting);
        }
    }

    /// Waits until none is on its way.
    pub(super) fn wait(&self, within: Duration) {
        let end = Instant::now().checked_add(within);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running > 0 {
            let left = end.map_or(within, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return;
            }
            running = self.none.wait_timeout(running, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn spill(shared: &Shared, waiting: &Mutex<Option<(Box<Pending>, Running)>>) {
    let taken = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((pending, running)) = taken {
        let Pending { letter, answer, .. } = *pending;
        answer.send(worker::keep(shared, &letter, closed()));
        drop(running);
    }
}
