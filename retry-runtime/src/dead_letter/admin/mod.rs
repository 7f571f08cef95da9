//! What an operator does to a whole store: retention, erasure, export and import.

mod erase;
mod export;
mod line;
mod record;
mod retention;
mod text;

use std::sync::Arc;
use std::time::Duration;

use crate::dead_letter::{Actor, BoxFuture};
use crate::error::StoreError;

pub use erase::{ERASED, EraseReport, EraseRequest};
pub use export::{Exporter, ImportReport, Importer};
pub use record::{
    EXPORT_PAGE_BYTES, ExportPage, ExportRequest, Imported, Joined, KnownLetter, LetterRecord, ParkingRecord,
};
pub use retention::{DueReport, KindRetention, PruneReport, PruneRequest, Pruned, Retention};

/// A store that can be kept in order.
///
/// As with [`DeadLetterStore`](crate::dead_letter::DeadLetterStore), every verb is judged by the store's own clock, and one
/// that changes something takes an [`Actor`] and returns what changed.
///
/// # Errors
/// [`StoreError`], by kind. What was done before an error is done, and stays.
pub trait StoreAdmin: Send + Sync {
    /// Deletes closed letters that retention keeps no longer, in small steps. What is owed - parked, replaying, abandoned - is
    /// never deleted, however old.
    ///
    /// Gone are the letter, its payloads, its history and its events. What stays: its parkings, so that an old spill line is
    /// known and brings nothing back, and how many were deleted of each day, state, kind and error class.
    fn prune(&self, request: PruneRequest, actor: Actor) -> BoxFuture<'_, Result<PruneReport, StoreError>>;

    /// How many letters retention will delete within this time from now, and when the first of them.
    fn due_within(&self, retention: Retention, within: Duration) -> BoxFuture<'_, Result<DueReport, StoreError>>;

    /// Erases everything of one job: letters in any state, owed ones too, with all their payloads, their history and what the
    /// audit says of them; entries of the attempt ledger with this key; and its lines in spill files. What stays are numbers (how
    /// many were parked in which hour) and the ids of its parkings, so that nothing brings it back. The audit says that it was
    /// done, with a hash in the key's place. [`EraseReport::left`] says where something of it may still be.
    ///
    /// Copies elsewhere - backups, exports - are not reached.
    fn erase(&self, request: EraseRequest, actor: Actor) -> BoxFuture<'_, Result<EraseReport, StoreError>>;

    /// One page of letters with everything that belongs to them. [`Exporter`] makes lines of them.
    fn export(&self, request: ExportRequest) -> BoxFuture<'_, Result<ExportPage, StoreError>>;

    /// Takes letters of another store; each is taken whole, or not at all. One answer for each, in order.
    ///
    /// A letter whose parkings are all known changes nothing. One of a job that has a letter here joins it, as
    /// [`LetterRecord::join`] says. Any other is written down as it is.
    fn import(&self, records: Vec<LetterRecord>, actor: Actor) -> BoxFuture<'_, Result<Vec<Imported>, StoreError>>;
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<S: StoreAdmin + ?Sized> StoreAdmin for $type {
            fn prune(&self, request: PruneRequest, actor: Actor) -> BoxFuture<'_, Result<PruneReport, StoreError>> {
                (**self).prune(request, actor)
            }
            fn due_within(&self, retention: Retention, within: Duration) -> BoxFuture<'_, Result<DueReport, StoreError>> {
                (**self).due_within(retention, within)
            }
            fn erase(&self, request: EraseRequest, actor: Actor) -> BoxFuture<'_, Result<EraseReport, StoreError>> {
                (**self).erase(request, actor)
            }
            fn export(&self, request: ExportRequest) -> BoxFuture<'_, Result<ExportPage, StoreError>> {
                (**self).export(request)
            }
            fn import(&self, records: Vec<LetterRecord>, actor: Actor) -> BoxFuture<'_, Result<Vec<Imported>, StoreError>> {
                (**self).import(records, actor)
            }
        }
    )*};
}

through!(&S, Arc<S>, Box<S>);

// The trait stays object-safe.
const _: fn(&dyn StoreAdmin) = |_| {};
