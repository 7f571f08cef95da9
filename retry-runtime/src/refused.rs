//! Errors for calls that end without an error value of the body's own.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::stop::StopReason;

/// An attempt ran longer than `attempt_timeout`, or into the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    limit: Duration,
}

impl Elapsed {
    pub(crate) const fn new(limit: Duration) -> Self {
        Self { limit }
    }

    /// How long the attempt was allowed to run.
    pub const fn limit(&self) -> Duration {
        self.limit
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt timed out after {:?}", self.limit)
    }
}

impl Error for Elapsed {}

/// A call ended and there is no error of the body to return: no attempt ran, or its error is gone already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    reason: StopReason,
    detail: String,
    last: Option<LastFailure>,
}

/// What is known of the last failed attempt of a refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastFailure {
    /// Its class.
    pub class: String,
    /// Its code, where it carried one.
    pub code: Option<i64>,
    /// The error's text.
    pub message: String,
}

impl Refused {
    pub(crate) fn new(reason: StopReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), last: None }
    }

    /// The same, with the last failed attempt.
    pub(crate) fn after(mut self, last: Option<LastFailure>) -> Self {
        self.last = last;
        self
    }

    /// Why the call was refused.
    pub const fn reason(&self) -> StopReason {
        self.reason
    }

    /// The last failed attempt, where one ran.
    pub const fn last(&self) -> Option<&LastFailure> {
        self.last.as_ref()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused ({}): {}", self.reason, self.detail)?;
        match &self.last {
            Some(last) => write!(f, "; last failure: {}: {}", last.class, last.message),
            None => Ok(()),
        }
    }
}

impl Error for Refused {}
