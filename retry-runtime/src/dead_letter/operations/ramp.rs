//! How fast an operation may go: ramp, failure ratio, pace. Arithmetic alone.

use std::time::{Duration, Instant};

/// The next stage of the ramp: 1, 10, 100, ...
pub const fn next_stage(stage: u64) -> u64 {
    if stage == 0 { 1 } else { stage.saturating_mul(10) }
}

/// How many letters may have been begun, all in all, by the end of a stage: 1, 11, 111, ...
pub const fn stage_total(stage: u64) -> u64 {
    let (mut total, mut at) = (0_u64, 1_u64);
    while at <= stage {
        total = total.saturating_add(at);
        if at > u64::MAX / 10 {
            return u64::MAX;
        }
        at *= 10;
    }
    total
}

/// Whether an operation stops: `failed` of the `ended` replays are at or above the ratio, and at least `after` have ended.
pub fn failing_too_often(ended: u64, failed: u64, ratio: f64, after: u64) -> bool {
    // Counts of letters are far below 2^52.
    #[allow(clippy::cast_precision_loss, reason = "exact up to 2^52 letters")]
    let (ended_f, failed_f) = (ended as f64, failed as f64);
    ended > 0 && ended >= after && failed_f >= ratio * ended_f
}

/// So many starts per second, evenly spaced, at most one at a time: a slow start is not made good by a burst.
///
/// ```
/// use std::time::{Duration, Instant};
/// use retry_runtime::dead_letter::Pace;
///
/// let now = Instant::now();
/// let mut pace = Pace::new(Some(4.0));
/// assert_eq!(pace.wait(now), Duration::ZERO);
/// pace.started(now);
/// assert_eq!(pace.wait(now), Duration::from_millis(250));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    every: Duration,
    next: Option<Instant>,
}

impl Pace {
    /// Starts per second; `None` does not limit. What is no sensible rate (not above zero, not a number) does not limit
    /// either: requests are checked before.
    pub fn new(per_second: Option<f64>) -> Self {
        let every = per_second.filter(|rate| *rate > 0.0).and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok());
        Self { every: every.unwrap_or(Duration::ZERO), next: None }
    }

    /// Whether starts have to wait for each other at all.
    pub const fn is_limited(&self) -> bool {
        !self.every.is_zero()
    }

    /// How long until the next start.
    pub fn wait(&self, now: Instant) -> Duration {
        self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }

    /// One starts now.
    pub fn started(&mut self, now: Instant) {
        if self.is_limited() {
            // From the time that was due rather than from now, so that small delays do not add up; from now after a gap.
            let from = self.next.filter(|next| now.saturating_duration_since(*next) < self.every).unwrap_or(now);
            self.next = from.checked_add(self.every);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // B25
    #[test]
    fn stages_grow_tenfold_and_saturate() {
        let mut stage = 1;
        let mut totals = Vec::new();
        for _ in 0..4 {
            totals.push((stage, stage_total(stage)));
            stage = next_stage(stage);
        }
        assert_eq!(totals, [(1, 1), (10, 11), (100, 111), (1_000, 1_111)]);
        for _ in 0..40 {
            assert!(stage_total(stage) >= stage / 10);
            stage = next_stage(stage);
        }
        assert_eq!((stage, stage_total(stage)), (u64::MAX, u64::MAX));
        assert_eq!((next_stage(0), stage_total(0)), (1, 0));
    }

    // B16, S4
    #[test]
    fn the_ratio_counts_once_enough_have_ended() {
        assert!(!failing_too_often(0, 0, 0.5, 0));
        assert!(!failing_too_often(19, 19, 0.5, 20));
        assert!(failing_too_often(20, 10, 0.5, 20));
        assert!(!failing_too_often(20, 9, 0.5, 20));
        assert!(failing_too_often(1, 1, 0.5, 1));
        assert!(!failing_too_often(1_000, 999, 1.0, 20));
        assert!(failing_too_often(1_000, 1_000, 1.0, 20));
        assert!(failing_too_often(3, 1, 1.0 / 3.0, 1));
    }

    #[test]
    fn starts_are_evenly_spaced_without_bursts() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut pace = Pace::new(Some(2.0));
        pace.started(at(0));
        assert_eq!(pace.wait(at(100)), Duration::from_millis(400));
        // A little late: the next one is not later for it.
        pace.started(at(520));
        assert_eq!(pace.wait(at(520)), Duration::from_millis(480));
        // Long idle: one start, then spaced again.
        pace.started(at(9_000));
        assert_eq!(pace.wait(at(9_000)), Duration::from_millis(500));
    }

    #[test]
    fn slow_paces_are_slow_and_nonsense_is_no_limit() {
        let now = Instant::now();
        let mut slow = Pace::new(Some(0.1));
        slow.started(now);
        assert_eq!(slow.wait(now), Duration::from_secs(10));
        for rate in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY), Some(1e-300)] {
            let mut pace = Pace::new(rate);
            pace.started(now);
            assert_eq!(pace.wait(now), Duration::ZERO, "{rate:?}");
        }
    }
}
