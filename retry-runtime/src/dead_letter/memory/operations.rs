//! Bulk operations in memory, by the same rules as a durable store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, SystemTime};

use super::{MemoryStore, State, later};
use crate::dead_letter::operations::{self, MemberStep, PlanRow};
use crate::dead_letter::{
    Actor, BoxFuture, BulkOperations, ClaimRequest, Claimed, EraseRequest, ItemOutcome, ItemPage, Leave, LetterRow,
    LetterState, MemberClaim, Members, Next, Operation, OperationItem, OperationRequest, OperationStatus,
    OperationTicket, Plan, Release, Steer, Verb,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::id::Id;

/// Every operation of the store.
#[derive(Default)]
pub(super) struct Operations {
    all: BTreeMap<String, Kept>,
    /// Which operation a letter is replayed for.
    running: HashMap<u64, String>,
}

struct Kept {
    operation: Operation,
    items: BTreeMap<u64, OperationItem>,
    /// The members not begun: so that the next one is found without a look at those before it.
    pending: BTreeSet<u64>,
}

impl Kept {
    fn put(&mut self, seq: u64, outcome: ItemOutcome, detail: String, now: SystemTime) {
        if let Some(item) = self.items.get_mut(&seq) {
            self.operation.counts.step(item.outcome, outcome);
            item.outcome = outcome;
            item.detail = (!detail.is_empty()).then_some(detail);
            item.at = Some(now);
            if outcome == ItemOutcome::Pending {
                self.pending.insert(seq);
            } else {
                self.pending.remove(&seq);
            }
        }
    }

    fn pending(&self) -> Option<&OperationItem> {
        self.pending.first().and_then(|seq| self.items.get(seq))
    }
}

fn unknown(op_id: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, format!("no operation `{op_id}` in this store"))
}

impl Operations {
    fn of(&mut self, op_id: &str) -> Result<&mut Kept, StoreError> {
        self.all.get_mut(op_id).ok_or_else(|| unknown(op_id))
    }

    /// Takes a job's key out of what people wrote. Gives what is left of it.
    pub(super) fn forget_job(&mut self, request: &EraseRequest) -> Vec<String> {
        let mut left = Vec::new();
        for Kept { operation, items, .. } in self.all.values_mut() {
            request.remove_from(&mut operation.actor.name);
            request.remove_from(&mut operation.actor.reason);
            let details = items.values_mut().filter_map(|item| item.detail.as_mut());
            operation
                .note
                .iter_mut()
                .chain(&mut operation.runner)
                .chain(details)
                .for_each(|text| request.remove_from(text));
            if request.is_in_filter(&operation.filter.to_json()) {
                left.push(request.left_in_operation(&operation.id));
            }
        }
        left
    }

    /// The letter is no longer replayed: where that was for an operation, its member has its outcome.
    fn ended(&mut self, seq: u64, (outcome, detail): (ItemOutcome, String), now: SystemTime) {
        if let Some(kept) = self.running.remove(&seq).and_then(|op_id| self.all.get_mut(&op_id)) {
            kept.put(seq, outcome, detail, now);
        }
    }

    /// For which operation a letter is being replayed.
    pub(super) fn of_letter(&self, seq: u64) -> Option<&String> {
        self.running.get(&seq)
    }

    pub(super) fn finished(&mut self, row: &LetterRow, now: SystemTime) {
        self.ended(row.seq, operations::ended_as(row, false), now);
    }

    pub(super) fn reaped(&mut self, row: &LetterRow, now: SystemTime) {
        self.ended(row.seq, operations::ended_as(row, true), now);
    }

    pub(super) fn released(&mut self, seq: u64, release: Release, now: SystemTime) {
        self.ended(seq, operations::released_as(release), now);
    }
}

impl State {
    fn plan(&self, request: &OperationRequest, now: SystemTime) -> Result<Plan, StoreError> {
        let mut plan = Plan::new(request, now);
        for row in self.rows(&Plan::counted(request)?) {
            plan.add(&PlanRow::of(row, now));
        }
        let members = request.members()?;
        plan.sample = self.rows(&members).take(Plan::SAMPLE as usize).map(|row| row.letter_id.clone()).collect();
        Ok(plan)
    }

    fn start(&mut self, request: &OperationRequest, actor: Actor, now: SystemTime) -> Result<Operation, StoreError> {
        let filter = request.members()?;
        let items: BTreeMap<_, _> = self
            .rows(&filter)
            .map(|row| (row.seq, OperationItem::new(row.seq, Some(row.letter_id.clone()), row.payload_revision)))
            .collect();
        let id = Id::new(now).to_string();
        let mut operation =
            Operation::new(&id, request.verb, filter, request.options.clone(), actor, self.last_seq, now);
        operation.counts.add(ItemOutcome::Pending, items.len() as u64);
        let ending = if items.len() == 1 { "" } else { "s" };
        let detail = format!("{} of {} letter{ending}", operation.verb, items.len());
        self.happened_to(&id, "operation_started", &operation.actor, &detail, now);
        let pending = items.keys().copied().collect();
        self.operations.all.insert(id, Kept { operation: operation.clone(), items, pending });
        Ok(operation)
    }

    fn items(
        &self,
        op_id: &str,
        outcome: Option<ItemOutcome>,
        after: Option<u64>,
        limit: u32,
    ) -> Result<ItemPage, StoreError> {
        let kept = self.operations.all.get(op_id).ok_or_else(|| unknown(op_id))?;
        let items = kept
            .items
            .values()
            .filter(|item| after.is_none_or(|after| item.seq > after))
            .filter(|item| outcome.is_none_or(|outcome| item.outcome == outcome))
            .take((limit as usize).saturating_add(1))
            .map(|item| OperationItem {
                letter_id: self.letters.get(&item.seq).map(|stored| stored.row.letter_id.clone()),
                ..item.clone()
            });
        Ok(ItemPage::of(items.collect(), limit))
    }

    /// Writes down what happened to an operation.
    fn happened_to(&mut self, op_id: &str, what: &str, actor: &Actor, detail: &str, now: SystemTime) {
        let mut event = self.event(what, actor, detail, now);
        event.operation = Some(op_id.to_owned());
        self.events.push(event);
    }

    /// Writes down that an operation stands elsewhere.
    fn moved(&mut self, op_id: &str, before: (OperationStatus, u64), actor: &Actor, now: SystemTime) {
        let Some(kept) = self.operations.all.get(op_id) else { return };
        let after = &kept.operation;
        if before != (after.status, after.fence) {
            let what = format!("operation_{}", after.status);
            let detail = after.note.clone().or_else(|| after.runner.clone()).unwrap_or_default();
            self.happened_to(op_id, &what, actor, &detail, now);
        }
    }

    fn change(
        &mut self,
        op_id: &str,
        actor: &Actor,
        now: SystemTime,
        rule: impl FnOnce(&mut Operation) -> Result<(), StoreError>,
    ) -> Result<Operation, StoreError> {
        let operation = &mut self.operations.of(op_id)?.operation;
        let before = (operation.status, operation.fence);
        rule(operation)?;
        self.moved(op_id, before, actor, now);
        Ok(self.operations.of(op_id)?.operation.clone())
    }

    fn take(
        &mut self,
        op_id: &str,
        (runner, lease, force): (&str, Duration, bool),
        actor: &Actor,
        now: SystemTime,
    ) -> Result<Operation, StoreError> {
        self.reap(actor, now);
        self.change(op_id, actor, now, |operation| operation.take(runner, lease, force, now))?;
        let kept = self.operations.of(op_id)?;
        for item in kept.items.values_mut().filter(|item| item.outcome.is_waiting()) {
            kept.operation.counts.step(item.outcome, ItemOutcome::Pending);
            item.outcome = ItemOutcome::Pending;
            kept.pending.insert(item.seq);
        }
        Ok(kept.operation.clone())
    }

    fn claim_members(
        &mut self,
        ticket: &OperationTicket,
        claim: &MemberClaim,
        actor: &Actor,
        now: SystemTime,
    ) -> Result<Members, StoreError> {
        claim.check()?;
        let operation = &self.operations.of(&ticket.op_id)?.operation;
        operation.check(ticket)?;
        if operation.verb != Verb::Replay {
            return Err(operations::only_for(operation.verb));
        }
        let before = (operation.status, operation.fence);
        self.reap(actor, now);
        let mut claimed = Vec::new();
        let next = self.next_members(&ticket.op_id, claim, now, &mut claimed)?;
        for Claimed { row, .. } in &claimed {
            self.happened("claimed", row, Some(LetterState::Parked), actor, &claim.owner, now);
        }
        self.moved(&ticket.op_id, before, actor, now);
        let operation = self.operations.of(&ticket.op_id)?.operation.clone();
        Ok(Members::new(operation, claimed, next))
    }

    fn next_members(
        &mut self,
        op_id: &str,
        claim: &MemberClaim,
        now: SystemTime,
        claimed: &mut Vec<Claimed>,
    ) -> Result<Next, StoreError> {
        let mut looked = 0;
        loop {
            let kept = self.operations.all.get_mut(op_id).ok_or_else(|| unknown(op_id))?;
            if let Some(next) = kept.operation.before_next(!claimed.is_empty(), now) {
                return Ok(next);
            }
            if claimed.len() >= claim.limit as usize || looked >= claim.look_at {
                return Ok(Next::More);
            }
            looked += 1;
            let Some((seq, revision)) = kept.pending().map(|item| (item.seq, item.revision)) else { continue };
            let stored = self.letters.get_mut(&seq);
            let row = stored.as_ref().map(|stored| &stored.row);
            match MemberStep::of(row, revision, &claim.kinds, &kept.operation.options, now) {
                MemberStep::Pass(outcome, why) => kept.put(seq, outcome, why, now),
                MemberStep::Take => {
                    let Some(stored) = stored else { continue };
                    let mut request = ClaimRequest::new(claim.kinds.clone(), claim.owner.clone());
                    request.lease = claim.lease;
                    stored.row.claim(&request, now);
                    stored.kept_alive = claim.keep_alive;
                    claimed.push(Claimed::new(stored.row.clone(), stored.payload()));
                    kept.put(seq, ItemOutcome::Running, String::new(), now);
                    self.operations.running.insert(seq, op_id.to_owned());
                }
            }
        }
    }

    fn not_started(
        &mut self,
        ticket: &OperationTicket,
        (letter_id, fence): (&str, u64),
        why: String,
        actor: &Actor,
        now: SystemTime,
    ) -> Result<LetterRow, StoreError> {
        self.operations.of(&ticket.op_id)?;
        let release = Release::Held { fence };
        let row = self.by_hand(letter_id, "released", release.as_str(), actor, now, |stored| {
            stored.row.release(release, now)?;
            stored.kept_alive = false;
            Ok(())
        })?;
        self.operations.ended(row.seq, (ItemOutcome::NotStarted, why), now);
        Ok(row)
    }

    fn advance(
        &mut self,
        ticket: &OperationTicket,
        limit: u32,
        actor: &Actor,
        now: SystemTime,
    ) -> Result<Operation, StoreError> {
        let kept = self.operations.of(&ticket.op_id)?;
        kept.operation.check(ticket)?;
        if kept.operation.verb == Verb::Replay {
            return Err(operations::only_for(Verb::Replay));
        }
        let before = (kept.operation.status, kept.operation.fence);
        let mut done = Vec::new();
        for _ in 0..limit {
            if kept.operation.status != OperationStatus::Running {
                break;
            }
            let Some((seq, revision)) = kept.pending().map(|item| (item.seq, item.revision)) else { break };
            let mut row = self.letters.get_mut(&seq).map(|stored| &mut stored.row);
            let state = row.as_ref().map(|row| row.state);
            let (outcome, why) = operations::act(kept.operation.verb, row.as_deref_mut(), revision, actor, now);
            if let (ItemOutcome::Discarded | ItemOutcome::Restored, Some(row)) = (outcome, row) {
                done.push((outcome.as_str(), row.clone(), state));
            }
            kept.put(seq, outcome, why, now);
        }
        if kept.operation.status == OperationStatus::Running && kept.operation.counts.pending() == 0 {
            kept.operation.run_out(now);
        }
        let operation = kept.operation.clone();
        for (what, row, state) in done {
            self.happened(what, &row, state, actor, &operation.verb.detail(), now);
            if let Some(event) = self.events.last_mut() {
                event.operation = Some(operation.id.clone());
            }
        }
        self.moved(&ticket.op_id, before, actor, now);
        Ok(operation)
    }
}

impl MemoryStore {
    fn with_operation(
        &self,
        op_id: &str,
        actor: &Actor,
        change: impl FnOnce(&mut Operation, SystemTime) -> Result<(), StoreError>,
    ) -> Result<Operation, StoreError> {
        let now = self.clock.now();
        self.lock().change(op_id, actor, now, |operation| change(operation, now))
    }
}

impl BulkOperations for MemoryStore {
    fn plan(&self, request: OperationRequest) -> BoxFuture<'_, Result<Plan, StoreError>> {
        later(move || self.lock().plan(&request, self.clock.now()))
    }

    fn start(&self, request: OperationRequest, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>> {
        later(move || self.lock().start(&request, actor, self.clock.now()))
    }

    fn operation(&self, op_id: String) -> BoxFuture<'_, Result<Option<Operation>, StoreError>> {
        later(move || Ok(self.lock().operations.of(&op_id).ok().map(|kept| kept.operation.clone())))
    }

    fn operations(&self, after: Option<String>, limit: u32) -> BoxFuture<'_, Result<Vec<Operation>, StoreError>> {
        later(move || {
            let state = self.lock();
            // Ids rise with time.
            let behind = |id: &String| after.as_ref().is_none_or(|after| id < after);
            let newest_first = state.operations.all.iter().rev().filter(|(id, _)| behind(id));
            Ok(newest_first.take(limit as usize).map(|(_, kept)| kept.operation.clone()).collect())
        })
    }

    fn waiting(&self, limit: u32) -> BoxFuture<'_, Result<Vec<Operation>, StoreError>> {
        later(move || {
            let (state, now) = (self.lock(), self.clock.now());
            let all = state.operations.all.values().map(|kept| &kept.operation);
            Ok(all.filter(|operation| operation.is_waiting(now)).take(limit as usize).cloned().collect())
        })
    }

    fn items(
        &self,
        op_id: String,
        outcome: Option<ItemOutcome>,
        after: Option<u64>,
        limit: u32,
    ) -> BoxFuture<'_, Result<ItemPage, StoreError>> {
        later(move || self.lock().items(&op_id, outcome, after, limit))
    }

    fn steer(&self, op_id: String, steer: Steer, actor: Actor) -> BoxFuture<'_, Result<Operation, StoreError>> {
        later(move || self.with_operation(&op_id, &actor, |operation, now| operation.steer(steer, now)))
    }

    fn take(
        &self,
        op_id: String,
        runner: String,
        lease: Duration,
        force: bool,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Operation, StoreError>> {
        later(move || self.lock().take(&op_id, (&runner, lease, force), &actor, self.clock.now()))
    }

    fn keep(&self, ticket: OperationTicket, lease: Duration) -> BoxFuture<'_, Result<Operation, StoreError>> {
        let actor = Actor::new("store", "heartbeat");
        later(move || self.with_operation(&ticket.op_id, &actor, |operation, now| operation.keep(&ticket, lease, now)))
    }

    fn claim_members(
        &self,
        ticket: OperationTicket,
        claim: MemberClaim,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Members, StoreError>> {
        later(move || self.lock().claim_members(&ticket, &claim, &actor, self.clock.now()))
    }

    fn not_started(
        &self,
        ticket: OperationTicket,
        letter_id: String,
        fence: u64,
        why: String,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || self.lock().not_started(&ticket, (&letter_id, fence), why, &actor, self.clock.now()))
    }

    fn advance(
        &self,
        ticket: OperationTicket,
        limit: u32,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Operation, StoreError>> {
        later(move || self.lock().advance(&ticket, limit, &actor, self.clock.now()))
    }

    fn leave(
        &self,
        ticket: OperationTicket,
        leave: Leave,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Operation, StoreError>> {
        later(move || self.with_operation(&ticket.op_id, &actor, |operation, now| operation.leave(&ticket, leave, now)))
    }

    fn let_go(&self, ticket: &OperationTicket) {
        // An older runner has nothing to let go.
        let actor = Actor::new("store", "given back");
        let leave = Leave::Released;
        let _left = self.with_operation(&ticket.op_id, &actor, |operation, now| operation.leave(ticket, leave, now));
    }
}
