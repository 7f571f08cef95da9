//! How often to retry, and how long to wait.

mod class;
mod error;
mod plan;

use std::time::Duration;

use crate::backoff::Backoff;
use crate::jitter::Jitter;
use crate::nanos::uniform;

pub use class::ClassLimits;
pub use error::PolicyError;
pub use plan::Plan;
#[cfg(feature = "test-util")]
pub(crate) use plan::wait_text;

/// The largest number of retries, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retries {
    /// At most so many extra attempts after the first.
    Limited(u32),
    /// No limit by count.
    Forever,
}

impl Retries {
    /// How many attempts that makes, the first included; `None` without a limit.
    pub const fn attempts(self) -> Option<u64> {
        match self {
            // `u64::from` is not const; nothing is lost by widening.
            Self::Limited(retries) => Some(retries as u64 + 1),
            Self::Forever => None,
        }
    }

    /// Whether another retry may follow after `made` of them.
    pub const fn allow(self, made: u32) -> bool {
        match self {
            Self::Limited(retries) => made < retries,
            Self::Forever => true,
        }
    }

    /// The larger of two.
    pub(crate) fn or_more(self, other: Self) -> Self {
        match (self, other) {
            (Self::Limited(one), Self::Limited(two)) => Self::Limited(one.max(two)),
            _ => Self::Forever,
        }
    }
}

/// How often to retry, and how long to wait: immutable, `const`-constructible, shared freely between calls and threads.
/// All state of a call lives in that call.
///
/// | setting | default |
/// |---|---|
/// | [`max_retries`](Self::max_retries) | 2 |
/// | [`base_delay`](Self::base_delay) | 1 s |
/// | [`max_delay`](Self::max_delay) | 60 s |
/// | [`backoff`](Self::backoff) | exponential, factor 2 |
/// | [`jitter`](Self::jitter) | none |
/// | [`max_retry_after`](Self::max_retry_after) | 2 min |
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::{Jitter, Policy};
///
/// static GEMINI: Policy = Policy::new()
///     .max_retries(3)
///     .base_delay(Duration::from_secs(2))
///     .max_delay(Duration::from_secs(31))
///     .jitter(Jitter::Additive(Duration::from_secs(1)));
///
/// assert_eq!(GEMINI.to_string(), "4 attempts; waits 2s..3s, 4s..5s, 8s..9s; at most 17s in total");
/// ```
///
/// With `RETRY_DISABLED=1` in the environment every loop of the process makes one attempt, whatever its policy says, and
/// ends as exhausted; fallback, letter and ledger are as ever. `true`, `yes` and `on` say the same; `0`, `false`, `no`, `off`
/// and the empty text say no. Anything else is a notice, and retries are made. The variable is read at the first failure.
///
/// Settings that contradict each other are found by [`validate`](Self::validate), also at compile time. Without it
/// nothing panics: every wait is cut to `max_delay`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a policy does nothing by itself"]
pub struct Policy {
    retries: Retries,
    base_delay: Duration,
    max_delay: Duration,
    backoff: Backoff,
    jitter: Jitter,
    max_retry_after: Duration,
    /// A configuration says `max_retries = 0`: that holds for every class as well, whatever numbers they have.
    off: bool,
}

impl Policy {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            retries: Retries::Limited(2),
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
            backoff: Backoff::Exponential(2.0),
            jitter: Jitter::None,
            max_retry_after: Duration::from_secs(120),
            off: false,
        }
    }

    /// The number of extra attempts after the first; 0 means a single attempt.
    pub const fn max_retries(mut self, retries: u32) -> Self {
        self.retries = Retries::Limited(retries);
        self.off = false;
        self
    }

    /// No limit by count: give the call a deadline or a budget.
    pub const fn forever(mut self) -> Self {
        self.retries = Retries::Forever;
        self.off = false;
        self
    }

    /// The wait before the first retry.
    pub const fn base_delay(mut self, delay: Duration) -> Self {
        self.base_delay = delay;
        self
    }

    /// No wait is longer, but for a server's hint (see [`max_retry_after`](Self::max_retry_after)).
    pub const fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// How the wait grows per retry.
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// The random part of a wait.
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// The longest server hint obeyed by waiting. A longer one ends the call.
    pub const fn max_retry_after(mut self, longest: Duration) -> Self {
        self.max_retry_after = longest;
        self
    }

    /// The operator's last word: one attempt, for failures of every class.
    #[cfg(feature = "config")]
    pub(crate) const fn switched_off(mut self) -> Self {
        self.retries = Retries::Limited(0);
        self.off = true;
        self
    }

    pub(crate) const fn is_off(&self) -> bool {
        self.off
    }

    /// Its waits where nothing but a count and a shift gives them: the factor 2, no jitter, a limit, all within 63 bits.
    #[allow(clippy::cast_possible_truncation)] // what does not fit is sent away first
    pub(crate) const fn doubling(&self) -> Option<Doubling> {
        const FITS: u128 = i64::MAX as u128;
        let (Retries::Limited(max), Jitter::None) = (self.retries, self.jitter) else { return None };
        let (base, cap) = (self.base_delay.as_nanos(), self.max_delay.as_nanos());
        let doubles = matches!(self.backoff, Backoff::Exponential(factor) if factor.to_bits() == 2.0_f64.to_bits());
        if !doubles || base > FITS || cap > FITS {
            return None;
        }
        // nothing doubled stays nothing
        let mut uncut = 0;
        while uncut < u64::BITS && base << uncut < cap {
            uncut += 1;
        }
        let (base, cap) = (base as u64, if base == 0 { 0 } else { cap as u64 });
        Some(Doubling { max, uncut, base, cap })
    }

    /// How many retries.
    pub const fn retries(&self) -> Retries {
        self.retries
    }

    /// The wait before the first retry.
    pub const fn get_base_delay(&self) -> Duration {
        self.base_delay
    }

    /// The longest wait.
    pub const fn get_max_delay(&self) -> Duration {
        self.max_delay
    }

    /// How the wait grows.
    pub const fn get_backoff(&self) -> Backoff {
        self.backoff
    }

    /// The random part.
    pub const fn get_jitter(&self) -> Jitter {
        self.jitter
    }

    /// The longest server hint obeyed by waiting.
    pub const fn get_max_retry_after(&self) -> Duration {
        self.max_retry_after
    }

    /// The wait before retry `retry` (0 for the first), jitter included, never above `max_delay`.
    ///
    /// `previous` is what this gave for the retry before, which only decorrelated jitter asks; `None` counts as
    /// `base_delay`. `random` gives 64 uniform bits and is not called without jitter.
    pub fn delay(&self, retry: u32, previous: Option<Duration>, random: &mut dyn FnMut() -> u64) -> Duration {
        let v = self.backoff.delay(self.base_delay, self.max_delay, retry);
        let before = previous.unwrap_or(self.base_delay);
        self.jitter.apply(v, self.base_delay, self.max_delay, before, random)
    }

    /// The wait where the server asked for one of `hint` and the policy's own would be `own`: the longer of both, and with
    /// jitter on up to a tenth more, so that a crowd sent away together does not come back together.
    ///
    /// Never below the hint, even above `max_delay`. Where `own` is the longer it is spread already, and stays as it is.
    pub fn hinted(&self, own: Duration, hint: Duration, random: &mut dyn FnMut() -> u64) -> Duration {
        if own >= hint {
            own
        } else if self.jitter == Jitter::None {
            hint
        } else {
            uniform(hint, hint.saturating_add(hint / 10), random())
        }
    }

    /// The shortest and the longest wait before retry `retry` (0 for the first).
    pub fn wait_range(&self, retry: u32) -> (Duration, Duration) {
        let (base, cap) = (self.base_delay, self.max_delay);
        let v = self.backoff.delay(base, cap, retry);
        let longest_before = if self.jitter == Jitter::Decorrelated {
            Backoff::Exponential(3.0).delay(base, cap, retry)
        } else {
            Duration::ZERO
        };
        let (shortest, longest) = self.jitter.range(v, base, cap, longest_before);
        (shortest.min(cap), longest.min(cap))
    }

    /// What this policy amounts to.
    pub fn plan(&self) -> Plan {
        Plan::new(self)
    }

    /// Says which settings contradict each other: the first in the order of [`PolicyError`]'s variants.
    ///
    /// ```
    /// use retry_runtime::Policy;
    /// const FAST: Policy = Policy::new().base_delay(std::time::Duration::from_millis(50));
    /// const _: () = assert!(FAST.validate().is_ok());
    /// ```
    pub const fn validate(&self) -> Result<(), PolicyError> {
        if self.max_delay.as_nanos() < self.base_delay.as_nanos() {
            return Err(PolicyError::MaxDelayBelowBase { base_delay: self.base_delay, max_delay: self.max_delay });
        }
        if let Backoff::Exponential(factor) = self.backoff {
            if !factor.is_finite() {
                return Err(PolicyError::FactorNotFinite { factor });
            }
            if factor < 1.0 {
                return Err(PolicyError::FactorBelowOne { factor });
            }
        }
        if let (Retries::Forever, true) = (self.retries, self.base_delay.is_zero()) {
            return Err(PolicyError::ForeverWithoutDelay);
        }
        if let Jitter::Additive(jitter) = self.jitter {
            if jitter.as_nanos() > self.max_delay.as_nanos() {
                return Err(PolicyError::JitterAboveMaxDelay { jitter, max_delay: self.max_delay });
            }
        }
        Ok(())
    }

    /// The policy itself where [`validate`](Self::validate) finds nothing.
    pub const fn checked(self) -> Result<Self, PolicyError> {
        match self.validate() {
            Ok(()) => Ok(self),
            Err(error) => Err(error),
        }
    }
}

/// A policy whose waits only double, as far as the decision after a failure needs it: all found out beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubling {
    /// The number of retries.
    pub(crate) max: u32,
    /// The first retry whose wait is cut.
    uncut: u32,
    /// In nanoseconds.
    base: u64,
    cap: u64,
}

impl Doubling {
    /// [`Policy::delay`].
    #[inline]
    pub(crate) const fn delay(&self, retry: u32) -> Duration {
        Duration::from_nanos(if retry < self.uncut { self.base << retry } else { self.cap })
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

// Shared between threads, and by value.
const _: fn() = || {
    fn shareable<T: Copy + Send + Sync + 'static>() {}
    shareable::<Policy>();
};
