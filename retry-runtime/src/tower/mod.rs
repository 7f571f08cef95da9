//! A layer for `tower` (feature `tower`): retries around any service, by the same engine as `#[retry]`.
//!
//! ```
//! use std::time::Duration;
//! use retry_runtime::tower::RetryLayer;
//! use retry_runtime::{Budget, Jitter, Policy};
//! use tower_layer::Layer;
//!
//! static BUDGET: Budget = Budget::new();
//!
//! let layer = RetryLayer::new(Policy::new().base_delay(Duration::from_millis(100)).jitter(Jitter::Full)).budget(&BUDGET);
//! # #[derive(Clone)] struct Client;
//! let service = layer.layer(Client); // or `ServiceBuilder::new().layer(layer).service(client)`
//! # let _ = service;
//! ```
//!
//! # Requests
//! A request is cloned for each attempt, so it must be `Clone`. An `http::Request` is when its body is: `Full<Bytes>`,
//! `Bytes`, `String`. A streaming body is not, and cannot be sent twice: collect it first, under a limit of its own, or send
//! such requests past this layer. Nothing is buffered here: there is no queue, and a call holds its own request alone.
//!
//! # Readiness
//! The first attempt takes the readiness that the caller polled for. For each retry the service is cloned, and the clone
//! polled until it is ready, so limits on concurrency and load shedding inside see retries as they see calls. An error of
//! that polling counts as the attempt's.
//!
//! # Answers
//! An answer that counts as a failure (see [`Statuses`]) is dropped before the wait; the last one is returned as it is. So is
//! an outcome over which the [`Judge`] panics: the call ends there as `classifier_failed`, and a notice says so.

mod judge;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tower_layer::Layer;
use tower_service::Service;

use crate::__private::AsPolicy;
use crate::breaker::CircuitBreaker;
use crate::budget::Budget;
use crate::builder::{BreakWith, Breaker, NoBreaker, Shared};
use crate::engine::Unknown;
use crate::observe::Observer;
use crate::panics::caught;
use crate::service::{FailedAttempt, Failure, Settings, setters};
use crate::verdict::Verdict;

#[cfg(feature = "http")]
pub use judge::Statuses;
pub use judge::{Errors, Judge};

/// Makes services retry. See the [module](self) for what it asks of requests and services.
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until a service is put into it"]
pub struct RetryLayer<J = Errors, B = NoBreaker> {
    settings: Settings<B>,
    judge: J,
}

impl RetryLayer {
    /// Retries errors, by their own `Classify`, and takes every answer. Unknown failures stop. The policy is asked at the start
    /// of each call, so one from a file may change.
    #[track_caller]
    pub fn new(policy: impl AsPolicy + Send + Sync + 'static) -> Self {
        Self { settings: Settings::new("tower", policy), judge: Errors }
    }
}

impl<J, B> RetryLayer<J, B> {
    /// Decides which outcomes are failures, and of what kind: [`Statuses`], or a closure.
    pub fn judge<K>(self, judge: K) -> RetryLayer<K, B> {
        RetryLayer { settings: self.settings, judge }
    }

    setters!();
}

impl<J> RetryLayer<J> {
    /// A circuit breaker that admits the attempts, shared by all calls: a `&'static CircuitBreaker` or an
    /// `Arc<CircuitBreaker>`. A call that it refuses before its first attempt returns an error made of
    /// [`Refused`](crate::Refused), so the service's error has to be `From<Refused>`: `tower`'s `BoxError` is.
    pub fn breaker(self, breaker: impl Into<Shared<'static, CircuitBreaker>>) -> RetryLayer<J, Breaker<'static>> {
        RetryLayer { settings: self.settings.with_breaker(Breaker::new(breaker)), judge: self.judge }
    }
}

impl<S, J: Clone, B: Clone> Layer<S> for RetryLayer<J, B> {
    type Service = RetryService<S, J, B>;

    fn layer(&self, inner: S) -> Self::Service {
        RetryService { inner, layer: self.clone() }
    }
}

/// A service that retries: what a [`RetryLayer`] makes.
#[derive(Clone, Debug)]
pub struct RetryService<S, J = Errors, B = NoBreaker> {
    inner: S,
    layer: RetryLayer<J, B>,
}

impl<S, J, B, Request> Service<Request> for RetryService<S, J, B>
where
    S: Service<Request, Response: Send, Error: Send, Future: Send> + Clone + Send + 'static,
    Request: Clone + Send + 'static,
    J: Judge<S::Response, S::Error> + Clone + Send + 'static,
    B: BreakWith<FailedAttempt<S::Response, S::Error>> + Clone + Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = RetryFuture<S::Response, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The service that was polled is the one that is ready; its clone is not.
        let spare = self.inner.clone();
        let mut ready = Some(std::mem::replace(&mut self.inner, spare.clone()));
        let RetryLayer { settings, judge } = self.layer.clone();
        let attempt = move || {
            let (mut service, is_ready) = match ready.take() {
                Some(service) => (service, true),
                None => (spare.clone(), false),
            };
            let (request, judge) = (request.clone(), judge.clone());
            async move {
                let outcome = match if is_ready { Ok(()) } else { poll_fn(|cx| service.poll_ready(cx)).await } {
                    Ok(()) => service.call(request).await,
                    Err(error) => Err(error),
                };
                judged(&judge, outcome)
            }
        };
        let policy = settings.policy.policy();
        RetryFuture(Box::pin(settings.call(policy, attempt)))
    }
}

fn judged<J: Judge<R, E>, R, E>(judge: &J, outcome: Result<R, E>) -> Result<R, FailedAttempt<R, E>> {
    match (caught(|| judge.judge(&outcome)), outcome) {
        (Ok(None), Ok(answer)) => Ok(answer),
        (Ok(Some(verdict)), Ok(answer)) => Err(FailedAttempt(Failure::Answer(answer, Ok(verdict)))),
        (Err(panic), Ok(answer)) => Err(FailedAttempt(Failure::Answer(answer, Err(panic)))),
        (verdict, Err(error)) => {
            let verdict = verdict.map(|verdict| verdict.unwrap_or(Verdict::unknown("unknown")));
            Err(FailedAttempt(Failure::Error(error, verdict)))
        }
    }
}

/// A call with its retries.
#[must_use = "futures do nothing unless polled"]
pub struct RetryFuture<R, E>(Pin<Box<dyn Future<Output = Result<R, E>> + Send>>);

impl<R, E> Future for RetryFuture<R, E> {
    type Output = Result<R, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<R, E> fmt::Debug for RetryFuture<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryFuture").finish_non_exhaustive()
    }
}
