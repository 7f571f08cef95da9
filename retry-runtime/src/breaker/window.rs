//! The calls of the last while, in ten steps.

const STEPS: usize = 10;

/// Calls and failures of the last ten steps. The oldest step goes as a whole, so that between nine and ten tenths of the
/// window are looked at.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// When its first call ended; steps are counted from there.
    origin: Option<i64>,
    /// The number of the newest step.
    newest: i64,
    steps: [Step; STEPS],
}

#[derive(Clone, Copy, Debug)]
struct Step {
    calls: u32,
    failures: u32,
}

const EMPTY: Step = Step { calls: 0, failures: 0 };

impl Window {
    pub(super) const fn new() -> Self {
        Self { origin: None, newest: 0, steps: [EMPTY; STEPS] }
    }

    /// Counts a call that is over.
    pub(super) fn count(&mut self, window: i64, now: i64, failed: bool) {
        self.add(window, now, 1, u32::from(failed));
    }

    /// Counts calls that ended at this time.
    pub(super) fn add(&mut self, window: i64, now: i64, calls: u32, failures: u32) {
        self.move_on(window, now);
        if let Some(step) = self.steps.last_mut() {
            step.calls = step.calls.saturating_add(calls);
            step.failures = step.failures.saturating_add(failures);
        }
    }

    /// Calls and failures that are not older than the window.
    pub(super) fn sums(&mut self, window: i64, now: i64) -> (u32, u32) {
        self.move_on(window, now);
        self.steps.iter().fold((0, 0), |(calls, failures), step| {
            (step.calls.saturating_add(calls), step.failures.saturating_add(failures))
        })
    }

    /// The newest step last, and it is the one of `now`.
    fn move_on(&mut self, window: i64, now: i64) {
        let length = (window / 10).max(1);
        let origin = *self.origin.get_or_insert(now);
        let step = now.saturating_sub(origin).div_euclid(length);
        let passed = step.saturating_sub(self.newest);
        if (0..10).contains(&passed) {
            for _ in 0..passed {
                self.steps.rotate_left(1);
                if let Some(last) = self.steps.last_mut() {
                    *last = EMPTY;
                }
            }
            self.newest = step;
        } else {
            // all of it is too old, or of another clock
            *self = Self { origin: Some(now), ..Self::new() };
        }
    }
}
