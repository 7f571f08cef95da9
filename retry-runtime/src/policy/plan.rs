//! What a policy amounts to: attempts, waits, worst case.

use std::fmt;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::nanos::from_nanos;
use crate::policy::{Policy, Retries};

/// How many waits a plan lists, and how many the worst case sums one by one.
const LISTED: u32 = 64;
const SUMMED: u32 = 1024;
/// How many waits the one-line form shows.
const SHOWN: usize = 8;

/// What a policy amounts to, server hints and the run time of the attempts left out.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::Policy;
///
/// let plan = Policy::new().plan();
/// assert_eq!(plan.attempts(), Some(3));
/// assert_eq!(plan.waits(), [(Duration::from_secs(1), Duration::from_secs(1)), (Duration::from_secs(2), Duration::from_secs(2))]);
/// assert_eq!(plan.worst_case_total(), Some(Duration::from_secs(3)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    attempts: Option<u64>,
    waits: Vec<(Duration, Duration)>,
    complete: bool,
    worst_case_total: Option<Duration>,
}

impl Plan {
    pub(super) fn new(policy: &Policy) -> Self {
        let retries = policy.retries();
        let listed = match retries {
            Retries::Limited(retries) => retries.min(LISTED),
            Retries::Forever => LISTED,
        };
        Self {
            attempts: retries.attempts(),
            waits: (0..listed).map(|retry| policy.wait_range(retry)).collect(),
            complete: retries == Retries::Limited(listed),
            worst_case_total: match retries {
                Retries::Limited(retries) => Some(worst_case(policy, retries)),
                Retries::Forever => None,
            },
        }
    }

    /// How many attempts at most, the first included; `None`: no limit by count.
    pub const fn attempts(&self) -> Option<u64> {
        self.attempts
    }

    /// The shortest and the longest wait before each retry, in order; of a longer plan the first 64.
    /// [`Policy::wait_range`] answers for any other.
    pub fn waits(&self) -> &[(Duration, Duration)] {
        &self.waits
    }

    /// Whether [`waits`](Self::waits) lists every retry.
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// The sum of the longest waits; `None`: no limit by count. With more than 1024 retries it may be an upper bound: the
    /// waits after those count as the longest of them all.
    pub const fn worst_case_total(&self) -> Option<Duration> {
        self.worst_case_total
    }
}

fn worst_case(policy: &Policy, retries: u32) -> Duration {
    let longest = |retry| policy.wait_range(retry).1.as_nanos();
    let summed = retries.min(SUMMED);
    let sum = (0..summed).map(longest).fold(0, u128::saturating_add);
    let rest = retries - summed;
    let each = match policy.get_backoff() {
        _ if rest == 0 => 0,
        // Only a function of the user's may grow and shrink again.
        Backoff::Custom(_) => policy.get_max_delay().as_nanos(),
        _ => longest(retries - 1),
    };
    from_nanos(sum.saturating_add(each.saturating_mul(u128::from(rest))))
}

/// A wait as the plan shows it.
pub(crate) fn wait_text((shortest, longest): (Duration, Duration)) -> String {
    if shortest == longest {
        format!("{longest:?}")
    } else {
        // `Duration` itself writes 0ns, of which nobody thinks.
        let from = if shortest.is_zero() { "0s".to_owned() } else { format!("{shortest:?}") };
        format!("{from}..{longest:?}")
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.attempts {
            Some(1) => return f.write_str("1 attempt, no retry"),
            Some(attempts) => write!(f, "{attempts} attempts; waits ")?,
            None => f.write_str("attempts without limit; waits ")?,
        }
        for (index, wait) in self.waits.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", wait_text(*wait))?;
        }
        if self.waits.len() > SHOWN || !self.complete {
            f.write_str(", ...")?;
        }
        match self.worst_case_total {
            Some(total) => write!(f, "; at most {total:?} in total"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan().fmt(f)
    }
}
