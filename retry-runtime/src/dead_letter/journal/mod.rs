//! The journal: jobs that are written down before their first attempt, for processes that end without a word.
//!
//! A call with `dead_letter(.., journal)` enters its job, durably, before it begins, and strikes it out when it succeeds; a
//! call that parks is struck out with its letter, in one transaction. What a process leaves behind that is killed (SIGKILL,
//! `process::exit`, `abort`, a loss of power) is parked by another one, or by the next start: its letters have the reason
//! `crashed`.
//!
//! A job that was parked as crashed may have been done: the process may have been killed between the work and the entry's
//! end. At least once, as everywhere here.

#[cfg(feature = "stores")]
mod rules;

use std::sync::Arc;
use std::time::Duration;

use crate::dead_letter::{BoxFuture, DeadLetter, DeadLetterSink};
use crate::error::StoreError;
use crate::id::Id;
use crate::reply::Reply;

#[cfg(feature = "stores")]
pub use rules::crashed;

/// How long a process is taken for alive after its store last said so; renewed every third of it by the store's own thread.
pub const OWNER_LEASE: Duration = Duration::from_secs(60);

/// How a job ended that leaves no letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JobEnd {
    /// It succeeded.
    Succeeded,
    /// A final answer: nothing is owed.
    Gone,
}

/// What became of a job's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Struck {
    /// It is removed.
    Removed,
    /// This process was taken for dead, and the job is parked as crashed. Nothing touched the letter since, so it is closed:
    /// recovered, or discarded where the answer was final.
    Late,
    /// There is none: the job was never entered, or its letter is somebody's affair by now, and stays as it is.
    Nothing,
}

/// How many jobs stand in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalCounts {
    /// Of processes that live: they are under way.
    pub running: u64,
    /// Of processes that are dead: they are parked when leases are next taken back.
    pub orphaned: u64,
}

/// A sink that can also be told of a job before it begins.
///
/// `enter` and `strike` serve async callers, blocking callers and drop guards alike: they never block, and their work never
/// depends on the reply being kept. They take effect in the order in which they were called, letters included.
#[diagnostic::on_unimplemented(
    message = "`{Self}` keeps no journal",
    label = "`journal` needs a sink that implements `JobJournal`",
    note = "pass a store such as `dlq_sqlite::SqliteStore`, a reference to it, an `Arc` of it, or implement `retry_runtime::dead_letter::JobJournal`"
)]
pub trait JobJournal: DeadLetterSink {
    /// Writes a job down, in the name of this process. The letter is the one that is owed should the process die: of its
    /// parts `park_id`, `kind`, `job_id`, `model`, `payload` and `failed_at` (when the job was accepted) are kept. It goes
    /// through the same [redaction](crate::dead_letter::Intake) as every letter. Durable when answered.
    fn enter(&self, job: DeadLetter) -> Reply<Result<(), StoreError>>;

    /// Removes the entry of a job that leaves no letter. A store that fails goes on trying as long as it lives, and says so.
    fn strike(&self, park_id: Id, end: JobEnd) -> Reply<Result<Struck, StoreError>>;

    /// How many jobs stand in it.
    fn journalled(&self) -> BoxFuture<'_, Result<JournalCounts, StoreError>>;
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<J: JobJournal + ?Sized> JobJournal for $type {
            fn enter(&self, job: DeadLetter) -> Reply<Result<(), StoreError>> {
                (**self).enter(job)
            }
            fn strike(&self, park_id: Id, end: JobEnd) -> Reply<Result<Struck, StoreError>> {
                (**self).strike(park_id, end)
            }
            fn journalled(&self) -> BoxFuture<'_, Result<JournalCounts, StoreError>> {
                (**self).journalled()
            }
        }
    )*};
}

through!(&J, Arc<J>, Box<J>);

// The trait stays object-safe.
const _: fn(&dyn JobJournal) = |_| {};
