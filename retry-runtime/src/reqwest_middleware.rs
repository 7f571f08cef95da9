//! A middleware for `reqwest` (feature `reqwest-middleware`): retries around every request of a client, by the same engine
//! as `#[retry]`.
//!
//! ```no_run
//! use retry_runtime::reqwest_middleware::RetryMiddleware;
//! use retry_runtime::{Budget, CircuitBreaker, Jitter, Policy};
//!
//! static BUDGET: Budget = Budget::new();
//! static BREAKER: CircuitBreaker = CircuitBreaker::new();
//!
//! let retries = RetryMiddleware::new(Policy::new().jitter(Jitter::Full)).budget(&BUDGET).breaker(&BREAKER);
//! let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new()).with(retries).build();
//! # let _ = client;
//! ```
//!
//! Answers are judged by a table of statuses and by what their headers ask for, errors by their kind; the last answer or
//! error is returned as it is. Put it outermost of what should be done once for each request, and inside of it what should
//! be done for each attempt, as signing. A request whose body is a stream cannot be sent twice: it is sent once, as a call
//! with `max_retries = 0`, which asks the breaker, counts for it and for the budget, and is told of like any other.
//!
//! The extensions of a request are with its attempts while they run, and with the caller again afterwards, also when the
//! call is dropped in their middle.
//!
//! Every method is retried: a client for requests that must not be done twice says
//! [`idempotent(false)`](RetryMiddleware::idempotent), or has a middleware of its own for them.

use std::future::Future;
use std::io;
use std::mem::take;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::http::Extensions;
use ::reqwest::{Request, Response};
use ::reqwest_middleware::{Error, Middleware, Next};

use crate::__private::AsPolicy;
use crate::breaker::CircuitBreaker;
use crate::budget::Budget;
use crate::builder::{BreakWith, Breaker, NoBreaker, Shared};
use crate::classify::{Classify, StatusRules};
use crate::engine::Unknown;
use crate::observe::Observer;
use crate::panics::caught;
use crate::service::{FailedAttempt, Failure, Settings, of_answer, setters};
use crate::verdict::Verdict;

/// Retries the requests of a client: see the [module](self).
#[derive(Clone, Debug)]
#[must_use = "a middleware does nothing until a client has it"]
pub struct RetryMiddleware<B = NoBreaker> {
    settings: Settings<B>,
    rules: StatusRules,
}

impl RetryMiddleware {
    /// Retries by a policy; statuses are judged by [`StatusRules::HTTP`]. Unknown failures stop.
    #[track_caller]
    pub fn new(policy: impl AsPolicy + Send + Sync + 'static) -> Self {
        Self { settings: Settings::new("reqwest", policy), rules: StatusRules::HTTP }
    }

    /// A circuit breaker that admits the attempts, shared by all calls: a `&'static CircuitBreaker` or an
    /// `Arc<CircuitBreaker>`. A call that it refuses before its first attempt fails with a middleware's error that is a
    /// [`Refused`](crate::Refused).
    pub fn breaker(self, breaker: impl Into<Shared<'static, CircuitBreaker>>) -> RetryMiddleware<Breaker<'static>> {
        RetryMiddleware { settings: self.settings.with_breaker(Breaker::new(breaker)), rules: self.rules }
    }
}

impl<B> RetryMiddleware<B> {
    /// Other rules for statuses. One of 400 and more is a failure, as the rules say, and one below where they name it.
    pub fn rules(mut self, rules: StatusRules) -> Self {
        self.rules = rules;
        self
    }

    setters!();
}

type Attempt = Result<Response, FailedAttempt<Response, Error>>;

/// Written as `async_trait` would: the future borrows what it is given.
impl<B> Middleware for RetryMiddleware<B>
where
    B: BreakWith<FailedAttempt<Response, Error>> + Clone + Send + Sync + 'static,
{
    fn handle<'s, 'e, 'n, 'f>(
        &'s self,
        request: Request,
        extensions: &'e mut Extensions,
        next: Next<'n>,
    ) -> Pin<Box<dyn Future<Output = Result<Response, Error>> + Send + 'f>>
    where
        's: 'f,
        'e: 'f,
        'n: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let policy = self.settings.policy.policy();
            // A body that is a stream is there for one attempt.
            let (again, mut once, policy) = match request.try_clone() {
                None => (None, Some(request), policy.max_retries(0)),
                Some(_) => (Some(request), None, policy),
            };
            let lent = Lent::of(extensions);
            let attempt = || {
                let request = again.as_ref().map_or_else(|| once.take(), Request::try_clone);
                let (next, shelf) = (next.clone(), &lent.shelf);
                async move {
                    let Some(request) = request else { return sent_once_only() };
                    let mut extensions = Borrowed::from(shelf);
                    let outcome = next.run(request, &mut extensions.here).await;
                    judged(&self.rules, outcome)
                }
            };
            self.settings.clone().call(policy, attempt).await
        })
    }
}

/// Where extensions lie between attempts, each of which borrows them for itself.
type Shelf = Mutex<Extensions>;

/// The extensions of the caller: back when the call ends, or is dropped.
struct Lent<'e> {
    shelf: Shelf,
    caller: &'e mut Extensions,
}

impl<'e> Lent<'e> {
    fn of(caller: &'e mut Extensions) -> Self {
        Self { shelf: Mutex::new(take(caller)), caller }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        *self.caller = take(self.shelf.get_mut().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The extensions during an attempt: back on their shelf when it ends, or is dropped.
struct Borrowed<'s> {
    shelf: &'s Shelf,
    here: Extensions,
}

impl<'s> From<&'s Shelf> for Borrowed<'s> {
    fn from(shelf: &'s Shelf) -> Self {
        let here = take(&mut *shelf.lock().unwrap_or_else(PoisonError::into_inner));
        Self { shelf, here }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        *self.shelf.lock().unwrap_or_else(PoisonError::into_inner) = take(&mut self.here);
    }
}

#[allow(clippy::result_large_err)] // the answer itself
fn judged(rules: &StatusRules, outcome: Result<Response, Error>) -> Attempt {
    // an error may hold another one of the user's, whose code is asked as well
    let verdict = caught(|| match &outcome {
        Ok(answer) => of_answer(rules, answer.status(), answer.headers()),
        Err(error) => Some(error.classify()),
    });
    match (verdict.transpose(), outcome) {
        (None, outcome) => {
            outcome.map_err(|error| FailedAttempt(Failure::Error(error, Ok(Verdict::unknown("unknown")))))
        }
        (Some(verdict), Ok(answer)) => Err(FailedAttempt(Failure::Answer(answer, verdict))),
        (Some(verdict), Err(error)) => Err(FailedAttempt(Failure::Error(error, verdict))),
    }
}

/// A body that could be cloned, and now cannot.
#[allow(clippy::result_large_err)] // the same
fn sent_once_only() -> Attempt {
    let error = Error::middleware(io::Error::other("the body of the request can be sent once only"));
    Err(FailedAttempt(Failure::Error(error, Ok(Verdict::permanent("body")))))
}
