//! What of a service's outcomes is a failure.

use crate::classify::Classify;
use crate::verdict::Verdict;

/// Decides which outcomes of a service are failures, and of what kind. Any
/// `Fn(&Result<Response, Error>) -> Option<Verdict>` is one; `None` is no failure, and of an error an unknown one.
pub trait Judge<R, E> {
    /// The verdict about an outcome.
    fn judge(&self, outcome: &Result<R, E>) -> Option<Verdict>;
}

impl<F: Fn(&Result<R, E>) -> Option<Verdict>, R, E> Judge<R, E> for F {
    fn judge(&self, outcome: &Result<R, E>) -> Option<Verdict> {
        self(outcome)
    }
}

/// Errors are failures, by their own `Classify`; answers are none. The default.
#[derive(Clone, Copy, Debug)]
pub struct Errors;

impl<R, E: Classify> Judge<R, E> for Errors {
    fn judge(&self, outcome: &Result<R, E>) -> Option<Verdict> {
        outcome.as_ref().err().map(Classify::classify)
    }
}

/// HTTP answers are judged by their status too (feature `http`): one of 400 and more is a failure, as the rules say, and one
/// below where the rules name it. What their headers ask for is obeyed: `Retry-After` and its kin, see
/// [`hints`](crate::hints).
///
/// ```
/// use retry_runtime::tower::{RetryLayer, Statuses};
/// use retry_runtime::{Policy, StatusRules};
///
/// let layer = RetryLayer::new(Policy::new()).judge(Statuses(StatusRules::HTTP));
/// # let _ = layer;
/// ```
#[cfg(feature = "http")]
#[derive(Clone, Copy, Debug)]
pub struct Statuses(
    /// The table.
    pub crate::classify::StatusRules,
);

#[cfg(feature = "http")]
impl<Body, E: Classify> Judge<::http::Response<Body>, E> for Statuses {
    fn judge(&self, outcome: &Result<::http::Response<Body>, E>) -> Option<Verdict> {
        match outcome {
            Ok(answer) => crate::service::of_answer(&self.0, answer.status(), answer.headers()),
            Err(error) => Some(error.classify()),
        }
    }
}
