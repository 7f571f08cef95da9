//! Retries with limits that hold, derived classification and dead letters that never vanish.

#[doc(hidden)]
#[path = "private/mod.rs"]
pub mod __private;
pub mod attempt;
pub mod classify;
pub mod counters;
pub mod dead_letter;
pub mod error;
pub mod id;
pub mod ledger;
pub mod observe;
mod random;
pub mod reply;
mod stop;
mod verdict;

pub use classify::Classify;
pub use stop::StopReason;
pub use verdict::{Disposition, Verdict};

#[cfg(feature = "macros")]
pub use retry_derive::{Classify, retry};
