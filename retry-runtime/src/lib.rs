//! Retries with limits that hold, derived classification and dead letters that never vanish.

#[doc(hidden)]
#[path = "private/mod.rs"]
pub mod __private;
pub mod attempt;
mod backoff;
pub mod classify;
pub mod counters;
pub mod dead_letter;
pub mod error;
pub mod hints;
pub mod id;
mod jitter;
pub mod ledger;
mod nanos;
pub mod observe;
mod policy;
mod random;
pub mod reply;
mod stop;
#[cfg(feature = "test-util")]
pub mod testing;
mod verdict;

pub use backoff::Backoff;
pub use classify::{Classify, StatusRules};
pub use jitter::Jitter;
pub use policy::{Plan, Policy, PolicyError, Retries};
pub use stop::StopReason;
pub use verdict::{Disposition, Verdict};

#[cfg(feature = "macros")]
pub use retry_derive::{Classify, retry};
