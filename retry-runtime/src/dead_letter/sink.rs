//! Handing a letter over.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::dead_letter::DeadLetter;
use crate::error::StoreError;
use crate::reply::Reply;

/// Where a submitted letter ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Parking {
    /// Durably in the store.
    Parked {
        /// The letter's id in the store.
        letter_id: String,
    },
    /// Durably in the spill file, because the store failed.
    Spilled {
        /// The spill file.
        path: PathBuf,
        /// What the store said.
        because: StoreError,
    },
    /// Handed to the replay that is running this job; it is written with the replay's outcome.
    Replaying,
    /// Nowhere: store and spill both failed. Already counted, and said on stderr.
    Lost {
        /// What the last of them said.
        because: StoreError,
    },
}

impl Parking {
    /// Whether the letter is durably somewhere.
    pub const fn is_kept(&self) -> bool {
        !matches!(self, Self::Lost { .. })
    }
}

/// The outcome of a submission, later. Dropping it changes nothing about the letter.
pub type Ticket = Reply<Parking>;

/// Takes letters, never blocks, and loses nothing silently.
///
/// One verb serves async callers (await the ticket), blocking callers (wait for it with a limit) and drop guards (drop it).
/// What happens when the store fails - the spill file, then stderr - happens on the sink's own thread or runtime, never on
/// the caller's. Letters of one kind and job id are one letter. A later success of the same job closes nothing: it tells the
/// sink nothing, and the letter stays parked until it is replayed or given up by hand. The adapters in [`dead_letter`](crate::dead_letter) make a sink of a closure, with that chain built in.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dead-letter sink",
    label = "`dead_letter(sink = ..)` needs a `DeadLetterSink`",
    note = "pass a store such as `dlq_sqlite::SqliteStore`, a reference to it, an `Arc` of it, or implement `retry_runtime::dead_letter::DeadLetterSink`"
)]
pub trait DeadLetterSink: Send + Sync {
    /// Takes the letter. Never blocks and never fails: the ticket says how it ended.
    ///
    /// An async call awaits the ticket without a limit of its own, so every letter must be answered in the end (an
    /// [`Answer`](crate::reply::Answer) that is dropped is one). A `submit` that panics has lost the letter: the caller gets
    /// its own error all the same, and the loss is counted and said aloud.
    fn submit(&self, letter: DeadLetter) -> Ticket;
}

impl<S: DeadLetterSink + ?Sized> DeadLetterSink for &S {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        (**self).submit(letter)
    }
}

impl<S: DeadLetterSink + ?Sized> DeadLetterSink for Arc<S> {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        (**self).submit(letter)
    }
}

impl<S: DeadLetterSink + ?Sized> DeadLetterSink for Box<S> {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        (**self).submit(letter)
    }
}

impl fmt::Display for Parking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parked { letter_id } => write!(f, "parked as {letter_id}"),
            Self::Spilled { path, because } => write!(f, "spilled to {}: {because}", path.display()),
            Self::Replaying => f.write_str("handed to the running replay"),
            Self::Lost { because } => write!(f, "LOST: {because}"),
        }
    }
}

// The trait stays object-safe.
const _: fn(&dyn DeadLetterSink) = |_| {};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreErrorKind;
    use std::error::Error;

    // What a `GaveUp` lends can be kept beyond it.
    #[test]
    fn a_parking_can_be_cloned_with_its_cause() {
        let because = StoreError::new(StoreErrorKind::Full, "no space").with_source(fmt::Error);
        let lost = Parking::Lost { because };
        let Some(Parking::Lost { because }) = Some(&lost).cloned() else { unreachable!("a clone is alike") };
        assert_eq!((because.kind(), because.to_string()), (StoreErrorKind::Full, format!("no space: {}", fmt::Error)));
        assert!(matches!(because.source(), Some(source) if source.is::<fmt::Error>()));
    }
}
