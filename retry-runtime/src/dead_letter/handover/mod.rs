//! Short ways to a sink of your own: a blocking closure on its own thread, or an asynchronous one on a runtime.
//!
//! Both have the whole chain built in: a letter the closure does not take goes to the [spill](crate::dead_letter::Spill),
//! and where that fails it is a loud loss. After a failure the closure is asked again every 5 s, letters in between go to
//! the spill at once, and what was spilled is given to the closure again at the start and once it works again.

mod asynchronous;
mod blocking;
mod outage;
mod shared;

use std::error::Error;

pub use asynchronous::AsyncSink;
pub use blocking::BlockingSink;

use crate::error::{StoreError, StoreErrorKind};

/// What closing a sink did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closed {
    /// Letters the sink had not taken in time: they are in the spill (or were lost, loudly).
    pub spilled: u64,
    /// The worker has ended. `false`: it is stuck in the closure, and was left behind.
    pub ended: bool,
}

/// What a closure's error means: a [`StoreError`] means itself, any other that the sink is unavailable.
fn store_error(error: Box<dyn Error + Send + Sync>) -> StoreError {
    match error.downcast::<StoreError>() {
        Ok(error) => *error,
        Err(other) => StoreError::new(StoreErrorKind::Unavailable, "the sink did not take it").with_source(other),
    }
}

fn panicked() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the sink panicked")
}
