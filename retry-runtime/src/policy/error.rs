//! Settings that contradict each other.

use std::fmt;
use std::time::Duration;

/// Settings that contradict each other, one variant per rule. Its text names the settings, their values and what is
/// accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PolicyError {
    /// `max_delay` is below `base_delay`.
    MaxDelayBelowBase {
        /// The wait before the first retry.
        base_delay: Duration,
        /// The longest wait.
        max_delay: Duration,
    },
    /// The exponential factor is infinite or not a number.
    FactorNotFinite {
        /// The factor.
        factor: f64,
    },
    /// The exponential factor is below 1: waits would shrink.
    FactorBelowOne {
        /// The factor.
        factor: f64,
    },
    /// Retrying for ever without a wait would keep a processor busy.
    ForeverWithoutDelay,
    /// The jitter to add is longer than the longest wait.
    JitterAboveMaxDelay {
        /// The jitter.
        jitter: Duration,
        /// The longest wait.
        max_delay: Duration,
    },
    /// The deadline is zero: it has passed before the first attempt.
    ZeroDeadline,
    /// The time limit of an attempt is zero: none can succeed.
    ZeroAttemptTimeout,
    /// An attempt may take longer than all of them together.
    AttemptTimeoutAboveDeadline {
        /// The limit of one attempt.
        attempt_timeout: Duration,
        /// The limit of all attempts and waits.
        deadline: Duration,
    },
}

impl PolicyError {
    /// Checks a call's time limits, which belong to the call and not to its policy.
    pub const fn check_limits(deadline: Option<Duration>, attempt_timeout: Option<Duration>) -> Result<(), Self> {
        if let Some(deadline) = deadline {
            if deadline.is_zero() {
                return Err(Self::ZeroDeadline);
            }
        }
        if let Some(attempt_timeout) = attempt_timeout {
            if attempt_timeout.is_zero() {
                return Err(Self::ZeroAttemptTimeout);
            }
            if let Some(deadline) = deadline {
                if attempt_timeout.as_nanos() > deadline.as_nanos() {
                    return Err(Self::AttemptTimeoutAboveDeadline { attempt_timeout, deadline });
                }
            }
        }
        Ok(())
    }

    /// A stable name of the rule, for events.
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::MaxDelayBelowBase { .. } => "max_delay_below_base_delay",
            Self::FactorNotFinite { .. } => "factor_not_finite",
            Self::FactorBelowOne { .. } => "factor_below_one",
            Self::ForeverWithoutDelay => "forever_without_delay",
            Self::JitterAboveMaxDelay { .. } => "jitter_above_max_delay",
            Self::ZeroDeadline => "zero_deadline",
            Self::ZeroAttemptTimeout => "zero_attempt_timeout",
            Self::AttemptTimeoutAboveDeadline { .. } => "attempt_timeout_above_deadline",
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxDelayBelowBase { base_delay, max_delay } => {
                write!(f, "max_delay {max_delay:?} is below base_delay {base_delay:?}: it must be at least as long")
            }
            Self::FactorNotFinite { factor } => {
                write!(f, "exponential factor {factor} is not finite: give a number of 1 or more")
            }
            Self::FactorBelowOne { factor } => {
                write!(f, "exponential factor {factor} is below 1, so waits would shrink: give a number of 1 or more")
            }
            Self::ForeverWithoutDelay => {
                f.write_str("max_retries forever with base_delay 0s would retry without a pause: give a base_delay")
            }
            Self::JitterAboveMaxDelay { jitter, max_delay } => {
                write!(f, "jitter {jitter:?} is longer than max_delay {max_delay:?}: it must fit inside")
            }
            Self::ZeroDeadline => f.write_str("deadline 0s has passed before the first attempt: give a longer one"),
            Self::ZeroAttemptTimeout => {
                f.write_str("attempt_timeout 0s lets no attempt succeed: give a longer one, or leave it out")
            }
            Self::AttemptTimeoutAboveDeadline { attempt_timeout, deadline } => {
                write!(
                    f,
                    "attempt_timeout {attempt_timeout:?} is longer than deadline {deadline:?}: it must fit inside"
                )
            }
        }
    }
}

impl std::error::Error for PolicyError {}
