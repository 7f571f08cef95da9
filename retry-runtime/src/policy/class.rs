//! Other numbers for the failures of one class.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::jitter::Jitter;
use crate::policy::{Policy, Retries};

/// Other numbers for the failures of one class: what is not given here is the call's.
///
/// | setting | meaning |
/// |---|---|
/// | [`max_retries`](Self::max_retries) | how many failures of this class are retried in one call |
/// | [`base_delay`](Self::base_delay), [`max_delay`](Self::max_delay), [`backoff`](Self::backoff), [`jitter`](Self::jitter) | the wait after a failure of this class |
/// | [`max_retry_after`](Self::max_retry_after) | the longest server hint obeyed after one |
///
/// Failures of a class with a `max_retries` of its own are counted by themselves; no call makes more attempts than the
/// largest `max_retries` that was given allows. A class with a wait of its own grows it by its own failures: the first
/// failure of the class waits its `base_delay`.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::{ClassLimits, Policy};
///
/// const RATE_LIMIT: ClassLimits = ClassLimits::new().max_retries(3).base_delay(Duration::from_secs(10));
///
/// // what it amounts to, beside the call's policy
/// let plan = RATE_LIMIT.over(&Policy::new()).to_string();
/// assert_eq!(plan, "4 attempts; waits 10s, 20s, 40s; at most 70s in total");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use = "limits do nothing by themselves"]
pub struct ClassLimits {
    retries: Option<Retries>,
    base_delay: Option<Duration>,
    max_delay: Option<Duration>,
    backoff: Option<Backoff>,
    jitter: Option<Jitter>,
    max_retry_after: Option<Duration>,
}

impl ClassLimits {
    /// Nothing of its own.
    pub const fn new() -> Self {
        Self { retries: None, base_delay: None, max_delay: None, backoff: None, jitter: None, max_retry_after: None }
    }

    /// How many failures of this class are retried in one call; 0 stops at the first.
    pub const fn max_retries(mut self, retries: u32) -> Self {
        self.retries = Some(Retries::Limited(retries));
        self
    }

    /// No limit by count for this class: give the call a deadline or a budget.
    pub const fn forever(mut self) -> Self {
        self.retries = Some(Retries::Forever);
        self
    }

    /// The wait after the first failure of this class.
    pub const fn base_delay(mut self, delay: Duration) -> Self {
        self.base_delay = Some(delay);
        self
    }

    /// No wait after a failure of this class is longer, but for a server's hint.
    pub const fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = Some(delay);
        self
    }

    /// How the wait grows per failure of this class.
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// The random part of the wait.
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = Some(jitter);
        self
    }

    /// The longest server hint obeyed by waiting after a failure of this class.
    pub const fn max_retry_after(mut self, longest: Duration) -> Self {
        self.max_retry_after = Some(longest);
        self
    }

    /// The class's own number of retries.
    pub const fn retries(&self) -> Option<Retries> {
        self.retries
    }

    /// Whether the class has a wait of its own.
    pub const fn has_own_wait(&self) -> bool {
        self.base_delay.is_some() || self.max_delay.is_some() || self.backoff.is_some() || self.jitter.is_some()
    }

    /// The policy that holds for failures of this class where `policy` is the call's.
    pub const fn over(&self, policy: &Policy) -> Policy {
        let mut over = *policy;
        if let (Some(retries), false) = (self.retries, policy.off) {
            over.retries = retries;
        }
        if let Some(delay) = self.base_delay {
            over.base_delay = delay;
        }
        if let Some(delay) = self.max_delay {
            over.max_delay = delay;
        }
        if let Some(backoff) = self.backoff {
            over.backoff = backoff;
        }
        if let Some(jitter) = self.jitter {
            over.jitter = jitter;
        }
        if let Some(longest) = self.max_retry_after {
            over.max_retry_after = longest;
        }
        over
    }
}
