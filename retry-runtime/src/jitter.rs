//! The random part of a wait.

use std::time::Duration;

use crate::nanos::uniform;

/// The random part of a wait, always inside `max_delay`. Below, `v` is the wait that the backoff gives.
///
/// Whatever the kind, a crowd that has reached `max_delay` stays spread out: the random part is sampled under the limit,
/// not cut off by it. (Decorrelated waits, by their published formula, often are exactly `max_delay` once they are there.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// No random part; no random number is drawn.
    #[default]
    None,
    /// Anything from 0 to `v`.
    Full,
    /// Half of `v`, and anything up to the other half.
    Equal,
    /// Anything from `base_delay` to three times the wait before, at most `max_delay`. The backoff is not used.
    Decorrelated,
    /// `v` and anything up to this much. Where the sum could pass `max_delay`, the range moves down: at the limit the
    /// wait lies between `max_delay` less this much, and `max_delay`.
    Additive(Duration),
}

impl Jitter {
    /// The shortest and the longest wait: `v` is the backoff's wait, already at most `cap`; `before` the wait before.
    pub(crate) fn range(self, v: Duration, base: Duration, cap: Duration, before: Duration) -> (Duration, Duration) {
        match self {
            Self::None => (v, v),
            Self::Full => (Duration::ZERO, v),
            Self::Equal => (v / 2, v),
            Self::Decorrelated => (base, before.saturating_mul(3).max(base)),
            Self::Additive(extra) => {
                let low = v.min(cap.saturating_sub(extra));
                (low, low.saturating_add(extra).min(cap))
            }
        }
    }

    /// The wait itself.
    pub(crate) fn apply(
        self,
        v: Duration,
        base: Duration,
        cap: Duration,
        before: Duration,
        random: &mut dyn FnMut() -> u64,
    ) -> Duration {
        if self == Self::None {
            return v;
        }
        let (low, high) = self.range(v, base, cap, before);
        // Only the decorrelated range may reach over the cap: its formula cuts the drawn number.
        uniform(low, high, random()).min(cap)
    }
}
