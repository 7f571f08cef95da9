//! Retries with limits that hold, derived classification and dead letters that never vanish.
//!
//! # Runtimes
//! Async functions wait by tokio's timer (feature `tokio`, default). Polled outside of a tokio runtime, or in one without
//! its time enabled, a call panics in tokio ("there is no reactor running") at its first wait, or at once with an
//! `attempt_timeout`: there `#[retry(sleep = path)]` names the timer of the runtime in use, a
//! `fn(Duration) -> impl Future<Output = ()>`, and [`Retry::run_with`] takes one. Blocking functions need no runtime.

#[doc(hidden)]
#[path = "private/mod.rs"]
pub mod __private;
pub mod attempt;
mod backoff;
mod breaker;
mod budget;
mod builder;
pub mod classify;
mod clock;
#[cfg(feature = "config")]
pub mod config;
mod context;
pub mod counters;
pub mod dead_letter;
mod disabled;
mod engine;
pub mod error;
mod gave_up;
pub mod hints;
pub mod id;
mod jitter;
pub mod kept;
pub mod ledger;
mod nanos;
mod nest;
pub mod observe;
mod panics;
mod policy;
mod random;
mod refused;
pub mod reply;
#[cfg(feature = "reqwest-middleware")]
pub mod reqwest_middleware;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
mod service;
mod stop;
#[cfg(feature = "test-util")]
pub mod testing;
#[cfg(feature = "tower")]
pub mod tower;
mod verdict;

pub use __private::{AsBreaker, AsBudget, AsPolicy};
pub use backoff::Backoff;
pub use breaker::{BreakerOpen, BreakerPhase, BreakerState, CircuitBreaker, Permit};
pub use budget::{Budget, BudgetState, Budgets, Spent, Taken};
pub use builder::{
    BreakWith, Breaker, Breaks, Cancelled, Classifier, DerivedClassifier, NoBreaker, Retry, Shared, Uncancelled,
};
#[doc(hidden)]
pub use builder::{CancelWith, FromRefusal, Never};
pub use classify::{Classify, StatusRules};
pub use context::RetryContext;
pub use counters::DailyCounters;
#[cfg(feature = "stores")]
pub use dead_letter::DeadLetterStore;
pub use dead_letter::{DeadLetter, DeadLetterSink};
pub use engine::{Nested, Unknown};
pub use gave_up::GaveUp;
pub use jitter::Jitter;
pub use ledger::AttemptLedger;
pub use policy::{ClassLimits, Plan, Policy, PolicyError, Retries};
pub use refused::{Elapsed, LastFailure, Refused};
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub use service::FailedAttempt;
pub use stop::StopReason;
pub use verdict::{Disposition, Verdict};

#[cfg(feature = "macros")]
pub use retry_derive::{Classify, retry, retrying};
