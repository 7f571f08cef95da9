//! Budgets and breakers that outlive a short-lived program: their state is kept in a store and restored at the next start.
//!
//! A job that runs every minute begins each time with a full budget and a closed breaker: a dependency that is down gets
//! its first hundred retries again and again. Kept states put an end to that:
//!
//! ```
//! use retry_runtime::dead_letter::MemoryStore; // or `dlq_sqlite::SqliteStore`
//! use retry_runtime::{Budget, CircuitBreaker};
//!
//! static BUDGET: Budget = Budget::new();
//! static BREAKER: CircuitBreaker = CircuitBreaker::new();
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), retry_runtime::error::StoreError> {
//! # let store = MemoryStore::new();
//! BUDGET.restore_from(&store, "gemini budget").await?; // false at the very first start
//! BREAKER.restore_from(&store, "gemini breaker").await?;
//! // .. the work ..
//! BUDGET.keep_in(&store, "gemini budget").await?; // a blocking program: `.wait(limit)`
//! BREAKER.keep_in(&store, "gemini breaker").await?;
//! # Ok(())
//! # }
//! ```
//!
//! What is kept is the state of one moment; of programs that run at one time, the last to keep it wins. A program that is
//! killed keeps nothing: one that runs for long keeps its states now and then.

mod text;

use std::time::Duration;

use crate::breaker::CircuitBreaker;
use crate::budget::{Budget, Budgets};
use crate::error::{StoreError, StoreErrorKind};
use crate::reply::Reply;

/// The longest name of a kept state, in bytes.
pub const MAX_NAME: usize = 200;

/// Keeps small texts by name. Implemented by the stores.
pub trait StateStore: Send + Sync {
    /// Keeps a text, in the place of what was kept under this name. Answered when it is durable; the work does not depend
    /// on the reply being kept.
    fn keep_state(&self, name: String, state: String) -> Reply<Result<(), StoreError>>;

    /// What is kept under a name; `None`: nothing.
    fn kept_state(&self, name: String) -> Reply<Result<Option<String>, StoreError>>;
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<S: StateStore + ?Sized> StateStore for $type {
            fn keep_state(&self, name: String, state: String) -> Reply<Result<(), StoreError>> {
                (**self).keep_state(name, state)
            }
            fn kept_state(&self, name: String) -> Reply<Result<Option<String>, StoreError>> {
                (**self).kept_state(name)
            }
        }
    )*};
}

through!(&S, std::sync::Arc<S>, Box<S>);

// The trait stays object-safe.
const _: fn(&dyn StateStore) = |_| {};

/// Checks a name: 1 to [`MAX_NAME`] bytes.
///
/// # Errors
/// `Invalid`, with what is accepted.
pub fn check_name(name: &str) -> Result<(), StoreError> {
    if (1..=MAX_NAME).contains(&name.len()) {
        return Ok(());
    }
    let message = format!("the name of a kept state has 1 to {MAX_NAME} bytes, and this one {}", name.len());
    Err(StoreError::new(StoreErrorKind::Invalid, message))
}

macro_rules! kept {
    ($($(#[$doc:meta])* impl $type:ty { as $what:literal, $write:path, $read:path })*) => {$(
        $(#[$doc])*
        impl $type {
            /// Keeps the state in a store, under a name of its own. See the [module](crate::kept).
            ///
            /// The reply is awaited, or waited for: it holds the error where the store fails.
            pub fn keep_in<S: StateStore + ?Sized>(&self, store: &S, name: &str) -> Reply<Result<(), StoreError>> {
                store.keep_state(name.to_owned(), $write(self))
            }

            /// Goes on from the state that a store keeps under this name; `false` where it keeps none. Meant for the start,
            /// before calls share what is restored.
            ///
            /// # Errors
            /// Those of the store, and `Invalid` where something else is kept under the name; nothing is changed then.
            pub async fn restore_from<S: StateStore + ?Sized>(&self, store: &S, name: &str) -> Result<bool, StoreError> {
                let kept = store.kept_state(name.to_owned()).await?;
                text::restore($what, name, kept, |value| $read(self, value))
            }

            /// The same for a blocking program.
            ///
            /// # Errors
            /// As [`restore_from`](Self::restore_from); `Unavailable` where the store gives no answer within the time.
            pub fn restore_from_blocking<S: StateStore + ?Sized>(
                &self,
                store: &S,
                name: &str,
                within: Duration,
            ) -> Result<bool, StoreError> {
                let kept = store.kept_state(name.to_owned()).wait(within).map_err(|_| unanswered(name, within))??;
                text::restore($what, name, kept, |value| $read(self, value))
            }
        }
    )*};
}

kept! {
    impl Budget { as "budget", text::of_budget, text::to_budget }
    impl CircuitBreaker { as "breaker", text::of_breaker, text::to_breaker }
    /// The keys whose budget is not as a new one are kept.
    impl Budgets<String> { as "budgets", text::of_budgets, text::to_budgets }
}

fn unanswered(name: &str, within: Duration) -> StoreError {
    let message = format!("no answer within {within:?} to what is kept under `{name}`");
    StoreError::new(StoreErrorKind::Unavailable, message)
}
