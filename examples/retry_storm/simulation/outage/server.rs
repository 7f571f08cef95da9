//! The service: workers that take one request after the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::{Dice, TROUBLE};

/// What a request takes when all is well, on average.
const WORK: Duration = Duration::from_millis(100);
/// So much longer it takes in the trouble.
const SLOWER: f64 = 3.0;
/// The part of the workers that are busy when all is well.
const BUSY: f64 = 0.6;
/// Who would wait longer for a worker is refused at once.
const LONGEST_QUEUE: Duration = Duration::from_secs(3);

pub(super) struct Server {
    /// When each worker is free, the first to be so on top.
    free: BinaryHeap<Reverse<Duration>>,
}

impl Server {
    /// With as many workers as so many requests a second need.
    pub(super) fn for_load(per_second: f64) -> Self {
        let mut workers = 0.0;
        let mut free = BinaryHeap::new();
        while free.is_empty() || workers < per_second * WORK.as_secs_f64() / BUSY {
            free.push(Reverse(Duration::ZERO));
            workers += 1.0;
        }
        Self { free }
    }

    /// How long it takes until the answer is there; `None` for a refusal.
    pub(super) fn serve(&mut self, now: Duration, dice: &mut Dice) -> Option<Duration> {
        let mut worker = self.free.peek_mut()?;
        let begins = worker.0.max(now);
        let queued = begins.saturating_sub(now);
        if queued > LONGEST_QUEUE {
            return None;
        }
        let slow = TROUBLE.contains(&usize::try_from(begins.as_secs()).unwrap_or(usize::MAX));
        let work = WORK.mul_f64((0.5 + dice.unit()) * if slow { SLOWER } else { 1.0 });
        worker.0 = begins + work;
        Some(queued + work)
    }
}
