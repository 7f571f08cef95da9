//! When a worker asks again.

use std::time::{Duration, Instant};

use crate::nanos::uniform;
use crate::observe::Notice;
use crate::random;

/// The first pause after a failure; each further one is twice as long.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST: Duration = Duration::from_secs(60);

/// A fifth more or less, by chance.
pub(super) fn about(wait: Duration) -> Duration {
    uniform(wait.saturating_mul(4) / 5, wait.saturating_mul(6) / 5, random::next_u64())
}

/// When one thing is asked for next: regularly, or after pauses that grow while it fails.
pub(super) struct Pauses {
    /// What is asked for, for people.
    what: &'static str,
    next: Instant,
    failures: u32,
}

impl Pauses {
    pub(super) const fn new(what: &'static str, next: Instant) -> Self {
        Self { what, next, failures: 0 }
    }

    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// It went well; again after `wait`.
    pub(super) fn again(&mut self, worker: &str, now: Instant, wait: Duration) {
        self.fine(worker);
        self.next = now.checked_add(wait).unwrap_or(now);
    }

    /// It went well.
    pub(super) fn fine(&mut self, worker: &str) {
        if self.failures > 0 {
            let message = format!("{worker} can {} again, after {} failures", self.what, self.failures);
            Notice::warning("replay_worker_goes_on", "", message).say();
            self.failures = 0;
        }
    }

    /// It failed: said once, until it goes well again.
    pub(super) fn failed(&mut self, worker: &str, why: &str, now: Instant) {
        if self.failures == 0 {
            let message = format!("{worker} cannot {}, and tries again until it can: {why}", self.what);
            Notice::error("replay_worker_waits", "", message).say();
        }
        let wait = pause_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        // Between half and all of it: workers that failed together come back apart.
        let wait = uniform(wait / 2, wait, random::next_u64());
        self.next = self.next.max(now.checked_add(wait).unwrap_or(now));
    }
}

fn pause_after(failures: u32) -> Duration {
    SHORTEST.saturating_mul(1 << failures.min(6)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute_and_are_forgotten() {
        let seconds: Vec<_> = (0..8).map(|failures| pause_after(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        let start = Instant::now();
        let mut pauses = Pauses::new("take letters", start);
        assert!(pauses.is_due(start));
        let mut waits = Vec::new();
        for _ in 0..9 {
            let now = pauses.next();
            pauses.failed("w", "busy", now);
            waits.push(pauses.next() - now);
        }
        for (nth, wait) in (0..).zip(&waits) {
            assert!(*wait >= pause_after(nth) / 2 && *wait <= pause_after(nth), "{waits:?}");
        }
        let now = pauses.next();
        pauses.again("w", now, Duration::ZERO);
        pauses.failed("w", "busy", now);
        assert!(pauses.next() - now <= SHORTEST);
    }

    #[test]
    fn about_is_a_fifth_more_or_less() {
        for _ in 0..1_000 {
            let wait = about(Duration::from_secs(5));
            assert!(wait >= Duration::from_secs(4) && wait <= Duration::from_secs(6));
        }
        assert_eq!(about(Duration::ZERO), Duration::ZERO);
        assert!(about(Duration::MAX) > Duration::from_secs(1));
    }
}
