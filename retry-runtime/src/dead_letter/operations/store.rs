//! The trait of stores that keep operations.

use std::sync::Arc;
use std::time::Duration;

use super::{
    ItemOutcome, ItemPage, Leave, MemberClaim, Members, Operation, OperationRequest, OperationTicket, Plan, Steer,
};
use crate::dead_letter::{Actor, BoxFuture, DeadLetterStore, LetterRow};
use crate::error::StoreError;

/// A store that keeps bulk operations.
///
/// An operation is planned (dry, nothing is written), started (its members are frozen), taken by a runner, and run to its
/// end: [`OperationRunner`](crate::dead_letter::OperationRunner) does that. It can be looked at and steered meanwhile, from
/// any process that has the store.
///
/// **Members and letters.** A member is `running` exactly while its letter is replayed for the operation. Whatever ends that
/// ([`finish`](DeadLetterStore::finish), [`release`](DeadLetterStore::release), [`reap`](DeadLetterStore::reap), with or
/// without the runner) gives the member its outcome in the same transaction. A release puts it back to `pending`; one by
/// force makes it `changed`.
///
/// **Fences.** A runner that another one has followed is refused by every verb that takes a ticket, and begins nothing more.
/// The results of letters it still holds are taken: they are its letters' own, by their own fences, and lost work would have
/// to be done twice.
///
/// The rules are the checks of `retry_runtime::testing::conformance::operations` (feature `test-util`).
///
/// # Errors
/// `Invalid` for a request without sense and for an operation that is not there, `Conflict` where the status forbids it,
/// `StaleLease` for a ticket that is not the newest, the others where the store itself fails.
pub trait BulkOperations: DeadLetterStore {
    /// What an operation would do, by the same filter, in one moment. Writes nothing.
    fn plan(&self, request: OperationRequest) -> BoxFuture<'_, Result<Plan, StoreError>>;

    /// Makes an operation and freezes its members: all or nothing, in one moment. Letters that come later, or match later,
    /// are no members.
    fn start(&self, request: OperationRequest, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>>;

    /// One operation.
    fn operation(&self, op_id: String) -> BoxFuture<'_, Result<Option<Operation>, StoreError>>;

    /// At most `limit` operations, the newest first, behind that of the id `after`.
    fn operations(&self, after: Option<String>, limit: u32) -> BoxFuture<'_, Result<Vec<Operation>, StoreError>>;

    /// At most `limit` operations that a runner may [take](Self::take) now, the oldest first: those that are pending, and
    /// those whose runner's lease has ended.
    fn waiting(&self, limit: u32) -> BoxFuture<'_, Result<Vec<Operation>, StoreError>>;

    /// At most `limit` members by number, behind number `after`; only those with an outcome where one is named.
    fn items(
        &self,
        op_id: String,
        outcome: Option<ItemOutcome>,
        after: Option<u64>,
        limit: u32,
    ) -> BoxFuture<'_, Result<ItemPage, StoreError>>;

    /// Pauses, resumes or cancels.
    fn steer(&self, op_id: String, steer: Steer, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>>;

    /// Takes an operation to run it: the fence rises, and the lease of the runner begins. Members that wait (blocked, not due,
    /// not started) are pending again. `force` takes it from a runner whose lease has not ended. When this future is dropped,
    /// the operation is let go.
    fn take(
        &self,
        op_id: String,
        runner: String,
        lease: Duration,
        force: bool,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Operation, StoreError>>;

    /// Extends the runner's lease to `lease` from now, and says where the operation stands.
    fn keep(&self, ticket: OperationTicket, lease: Duration) -> BoxFuture<'_, Result<Operation, StoreError>>;

    /// The next members of a replay: what may be replayed is claimed as by [`claim`](DeadLetterStore::claim) (leases that have
    /// run out are taken back first), what may not gets its outcome. Obeys the ramp and the failure ratio, and ends or pauses
    /// the operation itself when it is at its end. When this future is dropped, what it claimed is given back.
    fn claim_members(
        &self,
        ticket: OperationTicket,
        claim: MemberClaim,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Members, StoreError>>;

    /// Gives a claimed member back whose handler could not be started: its letter is parked as it was, and the member waits
    /// for the next run.
    fn not_started(
        &self,
        ticket: OperationTicket,
        letter_id: String,
        fence: u64,
        why: String,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow, StoreError>>;

    /// Does the work of a discard or restore with the next members, at most `limit`, in one moment; and ends the operation
    /// behind the last one.
    fn advance(
        &self,
        ticket: OperationTicket,
        limit: u32,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Operation, StoreError>>;

    /// The runner goes before the end.
    fn leave(
        &self,
        ticket: OperationTicket,
        leave: Leave,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Operation, StoreError>>;

    /// [`Leave::Released`] from a destructor: never blocks, and nobody hears how it ended. By default nothing happens, and the
    /// lease runs out.
    fn let_go(&self, ticket: &OperationTicket) {
        let _ = ticket;
    }
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<S: BulkOperations + ?Sized> BulkOperations for $type {
            fn plan(&self, request: OperationRequest) -> BoxFuture<'_, Result<Plan, StoreError>> {
                (**self).plan(request)
            }
            fn start(&self, request: OperationRequest, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>> {
                (**self).start(request, actor)
            }
            fn operation(&self, op_id: String) -> BoxFuture<'_, Result<Option<Operation>, StoreError>> {
                (**self).operation(op_id)
            }
            fn operations(&self, after: Option<String>, limit: u32) -> BoxFuture<'_, Result<Vec<Operation>, StoreError>> {
                (**self).operations(after, limit)
            }
            fn waiting(&self, limit: u32) -> BoxFuture<'_, Result<Vec<Operation>, StoreError>> {
                (**self).waiting(limit)
            }
            fn items(&self, op_id: String, outcome: Option<ItemOutcome>, after: Option<u64>, limit: u32) -> BoxFuture<'_, Result<ItemPage, StoreError>> {
                (**self).items(op_id, outcome, after, limit)
            }
            fn steer(&self, op_id: String, steer: Steer, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>> {
                (**self).steer(op_id, steer, actor)
            }
            fn take(&self, op_id: String, runner: String, lease: Duration, force: bool, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>> {
                (**self).take(op_id, runner, lease, force, actor)
            }
            fn keep(&self, ticket: OperationTicket, lease: Duration) -> BoxFuture<'_, Result<Operation, StoreError>> {
                (**self).keep(ticket, lease)
            }
            fn claim_members(&self, ticket: OperationTicket, claim: MemberClaim, actor: Actor) -> BoxFuture<'_, Result<Members, StoreError>> {
                (**self).claim_members(ticket, claim, actor)
            }
            fn not_started(&self, ticket: OperationTicket, letter_id: String, fence: u64, why: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
                (**self).not_started(ticket, letter_id, fence, why, actor)
            }
            fn advance(&self, ticket: OperationTicket, limit: u32, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>> {
                (**self).advance(ticket, limit, actor)
            }
            fn leave(&self, ticket: OperationTicket, leave: Leave, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>> {
                (**self).leave(ticket, leave, actor)
            }
            fn let_go(&self, ticket: &OperationTicket) {
                (**self).let_go(ticket);
            }
        }
    )*};
}

through!(&S, Arc<S>, Box<S>);

// The trait stays object-safe.
const _: fn(&dyn BulkOperations) = |_| {};
