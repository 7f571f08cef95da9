//! The rules of bulk operations: the store in memory keeps them, and stores with one fault each do not.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use retry_runtime::dead_letter::{
    Actor, BoxFuture, BulkOperations, ClaimRequest, DeadLetterStore, EventPage, EventQuery, Filter, Finish,
    ItemOutcome, ItemPage, Leave, LetterRow, MemberClaim, Members, MemoryStore, Operation, OperationItem,
    OperationRequest, OperationTicket, OutcomeCounts, Plan, Steer, StoreClock, Verb,
};
use retry_runtime::error::StoreError;
use retry_runtime::testing::{Faults, Planted, conformance};

type Result<T, E = StoreError> = std::result::Result<T, E>;

#[test]
fn the_store_in_memory_passes() {
    conformance::operations(MemoryStore::with_clock).assert_passed();
}

// B23
#[test]
fn the_store_in_memory_agrees_with_itself_about_the_members_of_any_filter() {
    let seeds = if std::env::var_os("SOAK").is_some() { 2_000 } else { 40 };
    for seed in 0..seeds {
        conformance::filters_of_operations(MemoryStore::with_clock, seed).unwrap();
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The members are looked for when the operation is run.
    MembersReadAgain,
    /// A runner's ticket is not looked at.
    OlderRunnerWrites,
    /// The counts leave out what was skipped.
    CountsForgetSkipped,
    /// What was edited is replayed all the same.
    EditsIgnored,
    /// The outcome is written some time after the result.
    OutcomeApart,
    /// Kinds without a handler are handed out.
    BlockedAreBurned,
    RampIgnored,
    RatioIgnored,
    PauseIgnored,
    LeaseOfRunnerIgnored,
    PlanWrites,
    WaitingForgetsTheDead,
    /// The plan looks at the request's filter, the members at the one with the exclusion.
    PlanHasItsOwnFilter,
    /// The members are found without the filter's upper end of time.
    StartHasItsOwnFilter,
    WaitingMembersStay,
    NotStartedIsAFailure,
    OperationsInTheAuditForgotten,
}

/// The store in memory with one fault.
struct Faulty {
    inner: MemoryStore,
    fault: Fault,
    requests: Mutex<HashMap<String, OperationRequest>>,
    /// Operations that go on as others.
    aliases: Mutex<HashMap<String, String>>,
    /// What is shown until it is written.
    shown: Mutex<HashMap<String, (Operation, Vec<OperationItem>)>>,
}

impl Faulty {
    fn new(fault: Fault, clock: StoreClock) -> Self {
        Self {
            inner: MemoryStore::with_clock(clock),
            fault,
            requests: Mutex::default(),
            aliases: Mutex::default(),
            shown: Mutex::default(),
        }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn alias(&self, op_id: &str) -> String {
        self.aliases.lock().unwrap().get(op_id).cloned().unwrap_or_else(|| op_id.to_owned())
    }

    async fn ticket(&self, mut ticket: OperationTicket) -> Result<OperationTicket> {
        ticket.op_id = self.alias(&ticket.op_id);
        if self.is(Fault::OlderRunnerWrites) {
            if let Some(operation) = self.inner.operation(ticket.op_id.clone()).await? {
                ticket.fence = operation.fence;
            }
        }
        Ok(ticket)
    }

    fn seen(&self, mut operation: Operation) -> Operation {
        if self.is(Fault::CountsForgetSkipped) {
            let mut counts = OutcomeCounts::default();
            for (outcome, n) in operation.counts.iter().filter(|(outcome, _)| !outcome.is_skipped()) {
                counts.add(outcome, n);
            }
            operation.counts = counts;
        }
        operation
    }
}

impl Faults for Faulty {
    type Inner = MemoryStore;
    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    fn finish(&self, result: Finish, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        Box::pin(async move {
            if self.is(Fault::OutcomeApart) {
                for operation in self.inner.operations(None, 10).await? {
                    let items = self.inner.items(operation.id.clone(), None, None, 1_000).await?.items;
                    self.shown.lock().unwrap().insert(operation.id.clone(), (operation, items));
                }
            }
            self.inner.finish(result, actor).await
        })
    }
    fn events(&self, query: EventQuery) -> BoxFuture<'_, Result<EventPage>> {
        Box::pin(async move {
            let mut page = self.inner.events(query).await?;
            if self.is(Fault::OperationsInTheAuditForgotten) {
                page.events.iter_mut().for_each(|event| event.operation = None);
            }
            Ok(page)
        })
    }

    fn plan(&self, mut request: OperationRequest) -> BoxFuture<'_, Result<Plan>> {
        Box::pin(async move {
            if self.is(Fault::PlanWrites) {
                self.inner.start(request.clone(), Actor::new("fault", "")).await?;
            }
            if self.is(Fault::PlanHasItsOwnFilter) {
                request.options.exclude_permanent = false;
            }
            self.inner.plan(request).await
        })
    }

    fn start(&self, mut request: OperationRequest, actor: Actor) -> BoxFuture<'_, Result<Operation>> {
        Box::pin(async move {
            if self.is(Fault::RampIgnored) {
                request.options.canary = false;
            }
            if self.is(Fault::RatioIgnored) {
                request.options.stop_ratio = None;
            }
            if self.is(Fault::StartHasItsOwnFilter) {
                request.filter.until = None;
            }
            let operation = self.inner.start(request.clone(), actor).await?;
            self.requests.lock().unwrap().insert(operation.id.clone(), request);
            Ok(operation)
        })
    }

    fn operation(&self, op_id: String) -> BoxFuture<'_, Result<Option<Operation>>> {
        Box::pin(async move {
            let op_id = self.alias(&op_id);
            if let Some((operation, _)) = self.shown.lock().unwrap().get(&op_id) {
                return Ok(Some(operation.clone()));
            }
            Ok(self.inner.operation(op_id).await?.map(|operation| self.seen(operation)))
        })
    }

    fn waiting(&self, limit: u32) -> BoxFuture<'_, Result<Vec<Operation>>> {
        Box::pin(async move {
            if self.is(Fault::WaitingForgetsTheDead) {
                let mut waiting = self.inner.waiting(limit).await?;
                waiting.retain(|operation| operation.lease_until.is_none());
                return Ok(waiting);
            }
            self.inner.waiting(limit).await
        })
    }

    fn items(
        &self,
        op_id: String,
        outcome: Option<ItemOutcome>,
        after: Option<u64>,
        limit: u32,
    ) -> BoxFuture<'_, Result<ItemPage>> {
        Box::pin(async move {
            let op_id = self.alias(&op_id);
            if let Some((_, items)) = self.shown.lock().unwrap().get(&op_id) {
                return Ok(ItemPage::of(items.clone(), 1_000));
            }
            self.inner.items(op_id, outcome, after, limit).await
        })
    }

    fn steer(&self, op_id: String, steer: Steer, actor: Actor) -> BoxFuture<'_, Result<Operation>> {
        Box::pin(async move {
            let op_id = self.alias(&op_id);
            if self.is(Fault::PauseIgnored) && steer == Steer::Pause {
                return Ok(self.inner.operation(op_id).await?.unwrap());
            }
            self.inner.steer(op_id, steer, actor).await
        })
    }

    fn take(
        &self,
        op_id: String,
        runner: String,
        lease: Duration,
        force: bool,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Operation>> {
        Box::pin(async move {
            let force = force || self.is(Fault::LeaseOfRunnerIgnored);
            let request = self.requests.lock().unwrap().remove(&op_id);
            if let (Fault::MembersReadAgain, Some(request)) = (self.fault, request) {
                let again = self.inner.start(request, actor.clone()).await?;
                self.aliases.lock().unwrap().insert(op_id.clone(), again.id);
            }
            if self.is(Fault::WaitingMembersStay) {
                let before = self.inner.operation(op_id.clone()).await?;
                if let Some(waiting) = before.filter(|operation| operation.counts.waiting() > 0) {
                    let request = OperationRequest::new(Verb::Replay, Filter::id("nothing"));
                    let empty = self.inner.start(request, waiting.actor).await?;
                    self.aliases.lock().unwrap().insert(op_id.clone(), empty.id);
                }
            }
            let mut taken = self.inner.take(self.alias(&op_id), runner, lease, force, actor).await?;
            taken.id = op_id;
            Ok(taken)
        })
    }

    fn keep(&self, ticket: OperationTicket, lease: Duration) -> BoxFuture<'_, Result<Operation>> {
        Box::pin(async move { self.inner.keep(self.ticket(ticket).await?, lease).await })
    }

    fn claim_members(
        &self,
        ticket: OperationTicket,
        mut claim: MemberClaim,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Members>> {
        Box::pin(async move {
            let ticket = self.ticket(ticket).await?;
            self.shown.lock().unwrap().clear();
            if self.is(Fault::BlockedAreBurned) {
                claim.kinds.push("store".into());
            }
            let mut members = self.inner.claim_members(ticket.clone(), claim.clone(), actor.clone()).await?;
            if self.is(Fault::EditsIgnored) {
                let edited = self.inner.items(ticket.op_id, Some(ItemOutcome::Edited), None, 100).await?;
                for letter_id in edited.items.into_iter().filter_map(|item| item.letter_id) {
                    let mut request = ClaimRequest::new(claim.kinds.clone(), "fault");
                    request.filter = Filter::id(letter_id);
                    members.claimed.extend(self.inner.claim(request, actor.clone()).await?);
                }
            }
            members.operation = self.seen(members.operation);
            Ok(members)
        })
    }

    fn not_started(
        &self,
        ticket: OperationTicket,
        letter_id: String,
        fence: u64,
        why: String,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow>> {
        Box::pin(async move {
            if self.is(Fault::NotStartedIsAFailure) {
                let failed = retry_runtime::dead_letter::ReplayOutcome::Failed(why.into());
                return self.inner.finish(Finish::new(letter_id, fence, failed), actor).await;
            }
            self.inner.not_started(self.ticket(ticket).await?, letter_id, fence, why, actor).await
        })
    }

    fn advance(&self, ticket: OperationTicket, limit: u32, actor: Actor) -> BoxFuture<'_, Result<Operation>> {
        Box::pin(async move {
            let advanced = self.inner.advance(self.ticket(ticket).await?, limit, actor).await?;
            Ok(self.seen(advanced))
        })
    }

    fn leave(&self, ticket: OperationTicket, leave: Leave, actor: Actor) -> BoxFuture<'_, Result<Operation>> {
        Box::pin(async move { self.inner.leave(self.ticket(ticket).await?, leave, actor).await })
    }
}

/// Every check can fail: each fault is found by the checks it offends, by name.
#[test]
fn each_fault_is_found() {
    let found_by: &[(Fault, &[&str])] = &[
        (Fault::MembersReadAgain, &["letters_that_come_later_are_no_members", "members_are_frozen_and_not_read_again"]),
        (Fault::OlderRunnerWrites, &["an_older_runner_is_refused"]),
        (
            Fault::CountsForgetSkipped,
            &[
                "what_changed_meanwhile_is_skipped",
                "a_newer_payload_is_skipped_as_edited",
                "discards_go_in_chunks_with_an_outcome_each",
            ],
        ),
        (Fault::EditsIgnored, &["a_newer_payload_is_skipped_as_edited"]),
        (Fault::OutcomeApart, &["a_result_and_its_outcome_are_one", "counts_and_items_add_up_at_every_moment"]),
        (Fault::BlockedAreBurned, &["what_waits_is_not_burned_and_comes_back"]),
        (Fault::RampIgnored, &["a_ramp_goes_one_ten_a_hundred", "a_ramp_stops_at_its_first_bad_stage"]),
        (Fault::RatioIgnored, &["too_many_failures_pause_it_with_a_note", "a_ramp_stops_at_its_first_bad_stage"]),
        (Fault::PauseIgnored, &["what_is_paused_begins_nothing_and_goes_on_when_resumed"]),
        (Fault::LeaseOfRunnerIgnored, &["one_runner_at_a_time"]),
        (Fault::WaitingForgetsTheDead, &["what_waits_for_a_runner_is_listed_the_oldest_first"]),
        (Fault::PlanWrites, &["plan_count_and_members_agree"]),
        (Fault::PlanHasItsOwnFilter, &["plan_count_and_members_agree"]),
        (Fault::StartHasItsOwnFilter, &["plan_members_list_and_count_agree_about_any_filter"]),
        (Fault::WaitingMembersStay, &["what_waits_is_not_burned_and_comes_back"]),
        (Fault::NotStartedIsAFailure, &["a_handler_that_did_not_start_gives_its_member_back"]),
        (Fault::OperationsInTheAuditForgotten, &["what_an_operation_does_stands_in_the_audit"]),
    ];
    for (fault, wanted) in found_by {
        let report = conformance::operations(|clock| Planted(Faulty::new(*fault, clock)));
        let failed: Vec<_> = report.failures().map(|outcome| outcome.name).collect();
        for name in *wanted {
            assert!(failed.contains(name), "{fault:?} is not found by {name}, only by {failed:?}");
        }
    }
}
