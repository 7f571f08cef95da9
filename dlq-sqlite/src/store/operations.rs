//! Bulk operations over the store's two threads.

use std::sync::Arc;
use std::time::Duration;

use retry_runtime::dead_letter::{
    Actor, BoxFuture, BulkOperations, ItemOutcome, ItemPage, Leave, LetterRow, MemberClaim, Members, Operation,
    OperationRequest, OperationTicket, Plan, Steer,
};
use retry_runtime::error::StoreError;
use retry_runtime::reply::Reply;

use super::unheard::{Unheard, by_the_store};
use super::verbs::{later, settled};
use super::{SqliteStore, change};
use crate::claim::Taken;
use crate::operations::members::Got;
use crate::operations::{freeze, members, read, rows, run};
use crate::worker;

impl BulkOperations for SqliteStore {
    fn plan(&self, request: OperationRequest) -> BoxFuture<'_, Result<Plan, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || {
            let filters = Plan::counted(&request).and_then(|counted| Ok((counted, request.members()?)));
            let (counted, of_members) = match filters {
                Ok(filters) => filters,
                Err(invalid) => return Reply::ready(Err(invalid)),
            };
            let now = self.handle.clock.now();
            self.handle
                .reader
                .ask("plan an operation", move |c| freeze::plan(c, &scope, &request, (&counted, &of_members), now))
        })
    }

    fn start(&self, request: OperationRequest, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>> {
        later(move || match request.members() {
            Err(invalid) => Reply::ready(Err(invalid)),
            Ok(filter) => self.handle.change(
                "start an operation",
                move |tx| freeze::start(tx, &request, &filter, &actor).map(Ok),
                |_, _| (),
            ),
        })
    }

    fn operation(&self, op_id: String) -> BoxFuture<'_, Result<Option<Operation>, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("read an operation", move |c| rows::find(c, &scope, &op_id)))
    }

    fn operations(&self, after: Option<String>, limit: u32) -> BoxFuture<'_, Result<Vec<Operation>, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || {
            self.handle.reader.ask("list operations", move |c| read::operations(c, &scope, after.as_deref(), limit))
        })
    }

    fn waiting(&self, limit: u32) -> BoxFuture<'_, Result<Vec<Operation>, StoreError>> {
        let (scope, now) = (Arc::clone(&self.handle.scope), self.handle.clock.clone());
        later(move || {
            let ask = move |c: &_| read::waiting(c, &scope, now.now(), limit);
            self.handle.reader.ask("list operations that wait", ask)
        })
    }

    fn items(
        &self,
        op_id: String,
        outcome: Option<ItemOutcome>,
        after: Option<u64>,
        limit: u32,
    ) -> BoxFuture<'_, Result<ItemPage, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        Box::pin(async move {
            let page = move |c: &_| read::items(c, &scope, &op_id, outcome, (after, limit));
            self.handle.reader.ask("list an operation's members", page).await?
        })
    }

    fn steer(&self, op_id: String, steer: Steer, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>> {
        later(move || {
            self.handle.change("steer an operation", move |tx| run::steer(tx, &op_id, steer, &actor), |_, _| ())
        })
    }

    fn take(
        &self,
        op_id: String,
        runner: String,
        lease: Duration,
        force: bool,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Operation, StoreError>> {
        let shared = Arc::clone(&self.handle.shared);
        Box::pin(async move {
            let answer = self.handle.change(
                "take an operation",
                move |tx| {
                    let taken = run::take(tx, &op_id, (&runner, lease, force), &actor)?;
                    Ok(taken.map(|operation| (operation, Unheard::default())))
                },
                move |answer, _| {
                    if let Ok((operation, unheard)) = answer {
                        unheard.operation(&shared, operation.ticket());
                    }
                },
            );
            let (operation, unheard) = answer.await?;
            unheard.heard();
            Ok(operation)
        })
    }

    fn keep(&self, ticket: OperationTicket, lease: Duration) -> BoxFuture<'_, Result<Operation, StoreError>> {
        later(move || self.handle.change("keep an operation", move |tx| run::keep(tx, &ticket, lease), |_, _| ()))
    }

    fn claim_members(
        &self,
        ticket: OperationTicket,
        claim: MemberClaim,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Members, StoreError>> {
        Box::pin(async move {
            claim.check()?;
            let (lease, keep_alive, clock) = (claim.lease, claim.keep_alive, self.handle.clock.clone());
            let shared = Arc::clone(&self.handle.shared);
            let answer = self.handle.change(
                "claim members of an operation",
                move |tx| Ok(members::claim(tx, &ticket, &claim, &actor)?.map(|got| (got, Unheard::default()))),
                move |answer, leases| {
                    let Ok((got, unheard)) = answer else { return };
                    unheard.letters(&shared, &got.taken);
                    if keep_alive {
                        for Taken { row, .. } in &got.taken {
                            leases.hold(row.letter_id.clone(), row.fence, lease, clock.now());
                        }
                    }
                },
            );
            let (Got { operation, taken, next }, unheard) = answer.await?;
            let claimed = self.handle.decode(taken).await?;
            unheard.heard();
            Ok(Members::new(operation, claimed, next))
        })
    }

    fn not_started(
        &self,
        ticket: OperationTicket,
        letter_id: String,
        fence: u64,
        why: String,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        let held = letter_id.clone();
        later(move || {
            self.handle.change(
                "give a member back",
                move |tx| members::not_started(tx, &ticket, (&letter_id, fence), &why, &actor),
                move |done, leases| {
                    if settled(done) {
                        leases.drop_held(&held, fence);
                    }
                },
            )
        })
    }

    fn advance(
        &self,
        ticket: OperationTicket,
        limit: u32,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Operation, StoreError>> {
        later(move || {
            self.handle.change(
                "advance an operation",
                move |tx| members::advance(tx, &ticket, limit, &actor),
                |_, _| (),
            )
        })
    }

    fn leave(
        &self,
        ticket: OperationTicket,
        leave: Leave,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Operation, StoreError>> {
        later(move || self::leave(&self.handle.shared, ticket, leave, actor))
    }

    fn let_go(&self, ticket: &OperationTicket) {
        // Nobody waits: a lease that cannot be given back runs out.
        let _unheard = leave(&self.handle.shared, ticket.clone(), Leave::Released, by_the_store());
    }
}

pub(super) fn leave(
    shared: &worker::Shared,
    ticket: OperationTicket,
    leave: Leave,
    actor: Actor,
) -> Reply<Result<Operation, StoreError>> {
    change(shared, "leave an operation", move |tx| run::leave(tx, &ticket, &leave, &actor), |_, _| ())
}
