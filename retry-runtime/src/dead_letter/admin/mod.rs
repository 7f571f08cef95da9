//! What an operator does to a whole store: retention.

mod retention;

use std::sync::Arc;
use std::time::Duration;

use crate::dead_letter::{Actor, BoxFuture};
use crate::error::StoreError;

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
        }
    )*};
}

through!(&S, Arc<S>, Box<S>);

// The trait stays object-safe.
const _: fn(&dyn StoreAdmin) = |_| {};
