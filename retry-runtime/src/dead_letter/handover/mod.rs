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

use crate::dead_letter::DeadLetter;
use crate::error::{StoreError, StoreErrorKind};
use crate::observe::Notice;

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

/// A letter without sense says nothing about the sink.
fn is_of_the_letter(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::Invalid | StoreErrorKind::Conflict)
}

/// What offering a spilled letter again means: it is home, or refused and stays in its file.
///
/// # Errors
/// When the sink does not work, which ends the import.
fn is_home(letter: &DeadLetter, parked: Result<String, StoreError>) -> Result<bool, StoreError> {
    match parked {
        Ok(_) => Ok(true),
        Err(error) if is_of_the_letter(&error) => {
            let message = format!("letter {} stays in the spill, the sink refuses it: {error}", letter.park_id);
            Notice::warning("spill_refused", letter.kind.clone(), message).say();
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn panicked() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the sink panicked")
}
