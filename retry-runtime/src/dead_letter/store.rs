//! What a store offers beyond taking letters.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::dead_letter::{
    Actor, Aggregate, BoxFuture, ClaimRequest, Claimed, DeadLetterSink, Edit, Edited, EventPage, EventQuery, Filter,
    Finish, Group, LetterDetail, LetterRow, Page, PageRequest, Release, Revision, Summary,
};
use crate::error::StoreError;

/// What a store can do beyond the minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Extends the leases of [`ClaimRequest::keep_alive`] itself.
    pub heartbeats: bool,
    /// Letters survive the end of the process.
    pub durable: bool,
    /// Several processes may use it at once.
    pub shared: bool,
}

/// A store of dead letters. Parking is the sink's verb, [`submit`](DeadLetterSink::submit); these are the operator's.
///
/// Every verb is judged by the store's own clock. A verb that changes something takes an [`Actor`] and returns what
/// changed. Futures do nothing until they are awaited; one that is dropped half-way may or may not have done its work.
///
/// The rules a store must keep are the checks of `retry_runtime::testing::conformance` (feature `test-util`).
///
/// # Errors
/// [`StoreError`], by kind: `Invalid` for a request without sense or a letter that is not there, `StaleLease` for a fence
/// that is not the running replay's, `Conflict` where the state forbids it, the others where the store itself fails.
pub trait DeadLetterStore: DeadLetterSink {
    /// What this store can do.
    fn capabilities(&self) -> Capabilities;

    /// One letter, with payload and history.
    fn get(&self, letter_id: String) -> BoxFuture<'_, Result<Option<LetterDetail>, StoreError>>;

    /// One page of the letters that match. Keyset pages: as fast at any depth, and bounded where no index serves the filter
    /// alone ([`Filter::split`], [`Page::complete`]).
    fn list(&self, filter: Filter, page: PageRequest) -> BoxFuture<'_, Result<Page, StoreError>>;

    /// How many letters match. At once for a filter of states, kinds and error classes, which a store counts as letters come
    /// and go; by any other filter it costs a look at each letter that matches [the first part](Filter::split) of the filter.
    fn count(&self, filter: Filter) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// What is owed, spilled lines included.
    fn summary(&self) -> BoxFuture<'_, Result<Summary, StoreError>>;

    /// Counts over groups.
    fn aggregate(&self, question: Aggregate) -> BoxFuture<'_, Result<Vec<Group>, StoreError>>;

    /// Takes parked letters for a replay: atomically, under a lease, with the fence raised. When this future is dropped, what
    /// it took is given back: nobody else knows of those leases.
    fn claim(&self, request: ClaimRequest, actor: Actor) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>>;

    /// Writes a replay's result: all of it, or nothing. A result with a stale fence is recorded as a late attempt, changes
    /// nothing else, and is the error `StaleLease`.
    fn finish(&self, result: Finish, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>>;

    /// Extends a lease to `lease` from now; returns its new end.
    fn extend(&self, letter_id: String, fence: u64, lease: Duration) -> BoxFuture<'_, Result<SystemTime, StoreError>>;

    /// Puts a letter back to `parked` without a result.
    fn release(
        &self,
        letter_id: String,
        release: Release,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow, StoreError>>;

    /// Parks a closed letter again (recovered, discarded or abandoned), by hand: `max_replays` is raised by `more_replays`
    /// and never reset, the fence is raised, `closed_at` is taken away. Who did it and why is written down where the store
    /// keeps events. [`LetterRow::restore`] is the rule. It is the only way back for an abandoned letter.
    ///
    /// `Conflict` for a letter that is parked or replaying, `Invalid` for one that is not there, or that would come back
    /// without a replay left.
    fn restore(
        &self,
        letter_id: String,
        more_replays: u32,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow, StoreError>>;

    /// Discards a parked or abandoned letter: it is owed no more. Soft: payload and history stay until retention takes them,
    /// and [`restore`](Self::restore) brings it back. [`LetterRow::discard`] is the rule.
    fn discard(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>>;

    /// Closes a parked or abandoned letter whose work was done in another way: `recovered`, with
    /// [`closed_reason`](LetterRow::closed_reason) `resolved_by_hand`, so that it is never taken for a replay's success. The
    /// actor must give a reason. [`LetterRow::resolve`] is the rule.
    fn resolve(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>>;

    /// Gives a letter another payload, as a new revision: what was there stays. The idempotency key follows the revision.
    /// The same payload, byte for byte, changes nothing and says so. [`Edit::check`] and [`LetterRow::edit`] are the rules;
    /// [`PayloadDiff`](crate::dead_letter::PayloadDiff) shows what an edit changes.
    ///
    /// `Invalid` for what is not JSON; `Conflict` for a letter that is being replayed, or that has another revision by now.
    fn edit(&self, edit: Edit, actor: Actor) -> BoxFuture<'_, Result<Edited, StoreError>>;

    /// Every payload the letter ever had, in order; none for a letter that is not there.
    fn revisions(&self, letter_id: String) -> BoxFuture<'_, Result<Vec<Revision>, StoreError>>;

    /// One page of the audit: what happened to letters and to the store. Every change of a letter's state writes exactly one
    /// event, and so does every edit and every late result. Keyset pages, as of letters.
    fn events(&self, query: EventQuery) -> BoxFuture<'_, Result<EventPage, StoreError>>;

    /// Takes back the leases that have run out: each counts as a crash. Also done at every claim.
    fn reap(&self, actor: Actor) -> BoxFuture<'_, Result<Vec<LetterRow>, StoreError>>;

    /// Gives a held lease back from a destructor: never blocks, and nobody hears how it ended. The letter is parked again, and
    /// the store no longer extends the lease.
    ///
    /// A store of leases is expected to override it. By default nothing happens: the lease runs out where nobody extends it,
    /// but a store that extends leases by itself ([`Capabilities::heartbeats`]) would hold the letter for ever.
    fn give_back(&self, letter_id: &str, fence: u64) {
        let _ = (letter_id, fence);
    }
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<S: DeadLetterStore + ?Sized> DeadLetterStore for $type {
            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }
            fn get(&self, letter_id: String) -> BoxFuture<'_, Result<Option<LetterDetail>, StoreError>> {
                (**self).get(letter_id)
            }
            fn list(&self, filter: Filter, page: PageRequest) -> BoxFuture<'_, Result<Page, StoreError>> {
                (**self).list(filter, page)
            }
            fn count(&self, filter: Filter) -> BoxFuture<'_, Result<u64, StoreError>> {
                (**self).count(filter)
            }
            fn summary(&self) -> BoxFuture<'_, Result<Summary, StoreError>> {
                (**self).summary()
            }
            fn aggregate(&self, question: Aggregate) -> BoxFuture<'_, Result<Vec<Group>, StoreError>> {
                (**self).aggregate(question)
            }
            fn claim(&self, request: ClaimRequest, actor: Actor) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
                (**self).claim(request, actor)
            }
            fn finish(&self, result: Finish, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
                (**self).finish(result, actor)
            }
            fn extend(&self, letter_id: String, fence: u64, lease: Duration) -> BoxFuture<'_, Result<SystemTime, StoreError>> {
                (**self).extend(letter_id, fence, lease)
            }
            fn release(&self, letter_id: String, release: Release, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
                (**self).release(letter_id, release, actor)
            }
            fn restore(&self, letter_id: String, more_replays: u32, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
                (**self).restore(letter_id, more_replays, actor)
            }
            fn discard(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
                (**self).discard(letter_id, actor)
            }
            fn resolve(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
                (**self).resolve(letter_id, actor)
            }
            fn edit(&self, edit: Edit, actor: Actor) -> BoxFuture<'_, Result<Edited, StoreError>> {
                (**self).edit(edit, actor)
            }
            fn revisions(&self, letter_id: String) -> BoxFuture<'_, Result<Vec<Revision>, StoreError>> {
                (**self).revisions(letter_id)
            }
            fn events(&self, query: EventQuery) -> BoxFuture<'_, Result<EventPage, StoreError>> {
                (**self).events(query)
            }
            fn reap(&self, actor: Actor) -> BoxFuture<'_, Result<Vec<LetterRow>, StoreError>> {
                (**self).reap(actor)
            }
            fn give_back(&self, letter_id: &str, fence: u64) {
                (**self).give_back(letter_id, fence);
            }
        }
    )*};
}

through!(&S, Arc<S>, Box<S>);

// The trait stays object-safe.
const _: fn(&dyn DeadLetterStore) = |_| {};
