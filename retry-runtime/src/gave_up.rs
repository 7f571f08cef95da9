//! The full report of a failed call.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::attempt::AttemptRecord;
use crate::context::RetryContext;
use crate::dead_letter::Parking;
use crate::engine::{Knob, Stop};
use crate::stop::StopReason;

/// The error of a call that gave up: why, after what, and the last error.
///
/// Return `Result<T, GaveUp<E>>` instead of `Result<T, E>` from a `#[retry]` function to get it; the body still returns
/// `Result<T, E>`.
pub struct GaveUp<E> {
    report: Box<Report>,
    last: Option<E>,
}

struct Report {
    context: RetryContext,
    parking: Option<Parking>,
}

impl<E> GaveUp<E> {
    pub(crate) fn new(context: RetryContext, last: Option<E>, parking: Option<Parking>) -> Self {
        Self { report: Box::new(Report { context, parking }), last }
    }

    /// Why the call ended.
    pub fn reason(&self) -> StopReason {
        self.report.context.stop_reason().unwrap_or(StopReason::Unknown)
    }

    /// How many times the body ran.
    pub fn attempts(&self) -> u32 {
        self.report.context.attempts()
    }

    /// The failed attempts, oldest first: the first 8 and the last 8.
    pub fn history(&self) -> &[AttemptRecord] {
        self.report.context.history()
    }

    /// How long the whole call took.
    pub fn elapsed(&self) -> Duration {
        self.report.context.elapsed()
    }

    /// The last error; `None` when there is none: no attempt ran, or the last one timed out.
    pub const fn last(&self) -> Option<&E> {
        self.last.as_ref()
    }

    /// The last error, by value.
    pub fn into_last(self) -> Option<E> {
        self.last
    }

    /// Where the job was parked; `None` when the call has no dead letter or ended in a way that parks nothing.
    pub fn parking(&self) -> Option<&Parking> {
        self.report.parking.as_ref()
    }

    /// The whole record of the call.
    pub fn context(&self) -> &RetryContext {
        &self.report.context
    }

    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (attempts, elapsed) = (self.attempts(), self.elapsed());
        let plural = if attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {attempts} attempt{plural} in {elapsed:.1?}: ")?;
        match self.report.context.stop() {
            Some(stop) => write!(f, "{stop}")?,
            None => f.write_str("the call did not end")?,
        }
        if let Some(detail) = self.report.context.detail() {
            write!(f, ": {detail}")?;
        }
        match &self.report.parking {
            Some(parking) if !matches!(parking, Parking::Parked { .. }) => write!(f, "; dead letter {parking}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.knob {
            Knob::MaxRetries(max) => write!(f, "{}: max_retries {max} used up", self.reason),
            Knob::Disabled => write!(f, "{}: {} lets no loop retry", self.reason, crate::disabled::VARIABLE),
            Knob::OuterOnly => {
                write!(f, "{}: one attempt inside another call's, nested = outer_only", self.reason)
            }
            Knob::ClassRetries { class, max } => {
                write!(f, "{}: max_retries {max} of class `{class}` used up", self.reason)
            }
            Knob::Deadline { limit, wait } => {
                write!(f, "deadline {limit:?} would pass during a wait of {wait:?}")
            }
            Knob::DeadlineInAttempt { limit } => write!(f, "deadline {limit:?} passed during an attempt"),
            Knob::Budget { left, cost } => {
                let (left, cost) = (Tokens(left), Tokens(cost));
                write!(f, "the retry budget has {left} tokens left, and a retry takes {cost}")
            }
            Knob::Breaker(open) => write!(f, "{open}"),
            Knob::Hint { hint, max } => {
                write!(f, "server asked to wait {hint:?}, longer than max_retry_after {max:?}")
            }
            Knob::None => match self.reason {
                StopReason::Permanent => f.write_str("permanent failure"),
                StopReason::Unknown => f.write_str("unknown failure, and unknown = stop"),
                StopReason::Dropped => f.write_str("the call's future was dropped before it ended"),
                StopReason::OutcomeUnknown => {
                    f.write_str("the work may have been done all the same, and idempotent = false")
                }
                reason => write!(f, "{reason}"),
            },
        }
    }
}

/// Thousandths of a token, as tokens.
struct Tokens(u64);

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 1000, self.0 % 1000) {
            (whole, 0) => write!(f, "{whole}"),
            (whole, part) => write!(f, "{whole}.{part:03}"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for GaveUp<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        match (&self.last, self.report.context.history().last()) {
            (Some(error), _) => write!(f, "; last error: {error}"),
            (None, Some(last)) => write!(f, "; last error: {}", last.message),
            (None, None) => Ok(()),
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for GaveUp<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GaveUp")
            .field("reason", &self.reason())
            .field("attempts", &self.attempts())
            .field("elapsed", &self.elapsed())
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl<E: Error + 'static> Error for GaveUp<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last.as_ref().map(|error| error as &(dyn Error + 'static))
    }
}
