//! Bulk operations: runners, and what steers them.

use std::time::Duration;

use super::operations::{outcome_counts, replay_all};
use super::support::{Bench, Check, LEASE, actor, attempt, checks, demand, done, failure, refused, same, seconds};
use crate::dead_letter::{
    BulkOperations, Filter, ItemOutcome, Leave, LetterState, MemberClaim, Next, Operation, OperationRequest,
    OperationStatus, OperationTicket, ReplayOutcome, Steer, Verb,
};
use crate::error::{StoreError, StoreErrorKind};

pub(super) fn checks<S: BulkOperations>() -> Vec<Check<Bench<S>>> {
    checks![
        "D21" an_operation_is_kept_as_it_was_wanted,
        "D21" one_runner_at_a_time,
        "B27" another_runner_goes_on_after_the_lease,
        "D21" what_waits_for_a_runner_is_listed_the_oldest_first,
        "D13" what_nobody_hears_of_is_held_by_nobody,
        "D21" an_older_runner_is_refused,
        "D21" a_result_of_an_older_runner_is_its_letters_own,
        "B27" a_runner_that_leaves_is_followed_at_once,
        "B26" what_is_paused_begins_nothing_and_goes_on_when_resumed,
        "B26" what_is_cancelled_is_over,
        "D21" a_steer_that_leads_nowhere_is_a_conflict,
        "B25" a_ramp_goes_one_ten_a_hundred,
        "B25" a_ramp_stops_at_its_first_bad_stage,
        "B16" too_many_failures_pause_it_with_a_note,
        "B20" a_claim_looks_at_so_many_at_most,
        "D21" an_operation_without_members_is_done,
        "D22" operations_are_listed_the_newest_first,
        "D22" requests_without_sense_are_refused,
    ]
}

fn park_many<S: BulkOperations>(bench: &Bench<S>, n: usize) -> Result<Vec<String>, String> {
    (0..n).map(|n| bench.park_job(&format!("job {n}"))).collect()
}

fn take_as<S: BulkOperations>(
    bench: &Bench<S>,
    op_id: &str,
    runner: &str,
    force: bool,
) -> Result<Result<Operation, StoreError>, String> {
    attempt(bench.store.take(op_id.to_owned(), runner.to_owned(), LEASE, force, actor()))
}

fn steer<S: BulkOperations>(bench: &Bench<S>, op_id: &str, steer: Steer) -> Result<Operation, String> {
    done(bench.store.steer(op_id.to_owned(), steer, actor()))
}

fn an_operation_is_kept_as_it_was_wanted<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 3)?;
    let filter = Filter { kinds: vec!["fetch".to_owned(), "x\"y".to_owned()], ..Filter::all() };
    let mut request = OperationRequest::new(Verb::Restore { more_replays: 7 }, filter.clone());
    request.options.force = true;
    request.options.rate = Some(0.25);
    request.options.concurrency = 9;
    request.options.canary = true;
    request.options.stop_ratio = Some(0.125);
    request.options.stop_after = 3;
    let made = bench.start(request.clone())?;
    let found = done(bench.store.operation(made.id.clone()))?;
    same("the operation", found.as_ref(), Some(&made))?;
    same("verb", made.verb, request.verb)?;
    same("options", &made.options, &request.options)?;
    same("filter", &made.filter, &request.members().map_err(|error| error.to_string())?)?;
    same("actor", &made.actor, &actor())?;
    same("status", (made.status, made.fence, made.stage), (OperationStatus::Pending, 0, Some(1)))?;
    same("made", (made.created_at, made.finished_at), (bench.time.now(), None))
}

fn what_waits_for_a_runner_is_listed_the_oldest_first<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 2)?;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(bench.start(replay_all())?.id);
        bench.time.advance(seconds(1));
    }
    let waiting = |limit: u32| -> Result<Vec<usize>, String> {
        let waiting = done(bench.store.waiting(limit))?;
        let places =
            waiting.iter().map(|operation| ids.iter().position(|id| *id == operation.id).unwrap_or(usize::MAX));
        Ok(places.collect())
    };
    same("all", waiting(9)?, vec![0, 1, 2, 3, 4])?;
    same("the first two", waiting(2)?, vec![0, 1])?;
    let id = |nth: usize| ids.get(nth).map(String::as_str).unwrap_or_default();
    for nth in [0, 1] {
        take_as(bench, id(nth), "runner", false)?.map_err(|error| error.to_string())?;
        bench.time.advance(seconds(1));
    }
    steer(bench, id(2), Steer::Pause)?;
    steer(bench, id(3), Steer::Cancel)?;
    same("without those that run, are paused, or over", waiting(9)?, vec![4])?;
    bench.time.advance(LEASE.saturating_sub(seconds(2)));
    same("at the end of the first lease", waiting(9)?, vec![4])?;
    bench.time.advance(Duration::from_millis(1));
    same("behind it", waiting(9)?, vec![0, 4])?;
    steer(bench, id(2), Steer::Resume)?;
    same("resumed", waiting(9)?, vec![0, 2, 4])
}

/// Asks for something and is gone before the answer, or before the answer is looked at; what came at once is returned.
fn unheard<S: BulkOperations, T>(
    bench: &Bench<S>,
    mut asked: crate::dead_letter::BoxFuture<'_, Result<T, StoreError>>,
    answered: bool,
) -> Result<Option<T>, String> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let heard = match asked.as_mut().poll(&mut context) {
        std::task::Poll::Ready(heard) => Some(heard.map_err(|error| error.to_string())?),
        std::task::Poll::Pending => None,
    };
    if answered {
        done(bench.store.reap(actor()))?;
    }
    drop(asked);
    // Behind these, what nobody heard of was given back.
    done(bench.store.reap(actor()))?;
    done(bench.store.reap(actor()))?;
    Ok(heard)
}

fn what_nobody_hears_of_is_held_by_nobody<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 2)?;
    let id = bench.start(replay_all())?.id;
    for answered in [false, true, false, true] {
        let taking = bench.store.take(id.clone(), "gone".to_owned(), LEASE, false, actor());
        if let Some(taken) = unheard(bench, taking, answered)? {
            done(bench.store.leave(taken.ticket(), Leave::Released, actor()))?;
        }
        let left = done(bench.store.operation(id.clone()))?.ok_or("the operation is gone")?;
        same("the operation", (left.status, left.runner), (OperationStatus::Pending, None))?;
        let taken = take_as(bench, &id, "another", false)?.map_err(|error| error.to_string())?;
        let mut claim = MemberClaim::new(["fetch"], "another");
        claim.limit = 2;
        claim.keep_alive = true;
        if let Some(members) = unheard(bench, bench.store.claim_members(taken.ticket(), claim, actor()), answered)? {
            for claimed in members.claimed {
                let release = crate::dead_letter::Release::Held { fence: claimed.row.fence };
                bench.release(&claimed.row.letter_id, release)?.map_err(|error| error.to_string())?;
            }
        }
        let counts = done(bench.store.operation(id.clone()))?.ok_or("the operation is gone")?.counts;
        same("members", (counts.running(), counts.pending()), (0, 2))?;
        same("parked letters", done(bench.store.count(Filter::parked()))?, 2)?;
        done(bench.store.leave(taken.ticket(), Leave::Released, actor()))?;
    }
    Ok(())
}

fn one_runner_at_a_time<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 2)?;
    let operation = bench.start(replay_all())?;
    let taken = take_as(bench, &operation.id, "first", false)?.map_err(|error| error.to_string())?;
    same("status", taken.status, OperationStatus::Running)?;
    same("runner", taken.runner.as_deref(), Some("first"))?;
    same("lease", taken.lease_until, Some(bench.time.now() + LEASE))?;
    bench.time.advance(seconds(59));
    refused("a second one", take_as(bench, &operation.id, "second", false)?, StoreErrorKind::Conflict)?;
    let kept = done(bench.store.keep(taken.ticket(), LEASE))?;
    same("kept", kept.lease_until, Some(bench.time.now() + LEASE))?;
    bench.time.advance(seconds(59));
    refused("while it is kept", take_as(bench, &operation.id, "second", false)?, StoreErrorKind::Conflict)?;
    let forced = take_as(bench, &operation.id, "second", true)?.map_err(|error| error.to_string())?;
    demand!(forced.fence > taken.fence, "the fence did not rise: {} after {}", forced.fence, taken.fence);
    same("runner", forced.runner.as_deref(), Some("second"))
}

fn another_runner_goes_on_after_the_lease<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 4)?;
    let operation = bench.start(replay_all())?;
    let dead = bench.take(&operation.id)?;
    let first = bench.member(&dead)?;
    bench.finish(&first.row.letter_id, first.row.fence, ReplayOutcome::Recovered)?;
    bench.member(&dead)?;
    // Here it dies.
    bench.time.advance(LEASE + seconds(1));
    let ticket = bench.take(&operation.id)?;
    same("pending", bench.operation(&ticket)?.counts.pending(), 3)?;
    let ended = bench.run_down(&ticket, &ReplayOutcome::Recovered)?;
    same("counts", outcome_counts(&ended), vec![(ItemOutcome::Recovered, 4)])?;
    same("status", ended.status, OperationStatus::Done)?;
    let page = done(bench.store.list(Filter::all(), crate::dead_letter::PageRequest::default()))?;
    same("crashes", page.rows.iter().map(|row| row.crashes).sum(), 1)
}

fn older<S: BulkOperations>(bench: &Bench<S>) -> Result<(OperationTicket, OperationTicket), String> {
    let operation = bench.start(replay_all())?;
    let older = bench.take(&operation.id)?;
    let newer = take_as(bench, &operation.id, "newer", true)?.map_err(|error| error.to_string())?.ticket();
    Ok((older, newer))
}

fn an_older_runner_is_refused<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 3)?;
    let (older, newer) = older(bench)?;
    let stale = StoreErrorKind::StaleLease;
    refused("keep", attempt(bench.store.keep(older.clone(), LEASE))?, stale)?;
    let claim = MemberClaim::new(["fetch"], "older");
    refused("claim", attempt(bench.store.claim_members(older.clone(), claim, actor()))?, stale)?;
    let leave = bench.store.leave(older.clone(), Leave::Failed("no".to_owned()), actor());
    refused("leave", attempt(leave)?, stale)?;
    bench.store.let_go(&older);
    same("nothing is begun", bench.operation(&newer)?.counts.pending(), 3)?;
    same("status", bench.operation(&newer)?.status, OperationStatus::Running)?;
    same("the newer one", bench.members(&newer, 1)?.claimed.len(), 1)?;
    // Resumed, its own fence is an older one too.
    steer(bench, &newer.op_id, Steer::Pause)?;
    steer(bench, &newer.op_id, Steer::Resume)?;
    refused("after a resumption", attempt(bench.store.keep(newer, LEASE))?, stale)?;
    let discard = bench.start(OperationRequest::new(Verb::Discard, Filter::all()))?;
    let older = bench.take(&discard.id)?;
    take_as(bench, &discard.id, "newer", true)?.map_err(|error| error.to_string())?;
    refused("advance", attempt(bench.store.advance(older, 1, actor()))?, stale)
}

fn a_result_of_an_older_runner_is_its_letters_own<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 1)?;
    let operation = bench.start(replay_all())?;
    let older = bench.take(&operation.id)?;
    let claimed = bench.member(&older)?;
    let newer = take_as(bench, &operation.id, "newer", true)?.map_err(|error| error.to_string())?.ticket();
    same("it is not done twice", bench.members(&newer, 1)?.next, Next::Wait)?;
    bench.finish(&claimed.row.letter_id, claimed.row.fence, ReplayOutcome::Recovered)?;
    let ended = bench.members(&newer, 1)?.operation;
    same("counts", outcome_counts(&ended), vec![(ItemOutcome::Recovered, 1)])?;
    same("status", ended.status, OperationStatus::Done)
}

fn a_runner_that_leaves_is_followed_at_once<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 2)?;
    let ticket = bench.run_of(replay_all())?;
    let left = done(bench.store.leave(ticket, Leave::Released, actor()))?;
    same("status", (left.status, left.runner, left.lease_until), (OperationStatus::Pending, None, None))?;
    let ticket = bench.take(&left.id)?;
    let left = done(bench.store.leave(ticket, Leave::Paused("the queue is down".to_owned()), actor()))?;
    same("paused", (left.status, left.note.as_deref()), (OperationStatus::Paused, Some("the queue is down")))?;
    refused("take", take_as(bench, &left.id, "next", true)?, StoreErrorKind::Conflict)?;
    steer(bench, &left.id, Steer::Resume)?;
    let ticket = bench.take(&left.id)?;
    let left = done(bench.store.leave(ticket, Leave::Failed("no".to_owned()), actor()))?;
    same("failed", (left.status, left.note.as_deref()), (OperationStatus::Failed, Some("no")))
}

fn what_is_paused_begins_nothing_and_goes_on_when_resumed<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 3)?;
    let ticket = bench.run_of(replay_all())?;
    let claimed = bench.member(&ticket)?;
    let paused = steer(bench, &ticket.op_id, Steer::Pause)?;
    same("paused", (paused.status, paused.runner.as_deref()), (OperationStatus::Paused, None))?;
    let members = bench.members(&ticket, 1)?;
    same("begun", (members.claimed.len(), members.next), (0, Next::Over))?;
    bench.finish(&claimed.row.letter_id, claimed.row.fence, ReplayOutcome::Recovered)?;
    same("under way ends", bench.operation(&ticket)?.counts.get(ItemOutcome::Recovered), 1)?;
    // What an operator said stays said.
    done(bench.store.leave(ticket.clone(), Leave::Released, actor()))?;
    same("status", bench.operation(&ticket)?.status, OperationStatus::Paused)?;
    steer(bench, &ticket.op_id, Steer::Resume)?;
    let ticket = bench.take(&ticket.op_id)?;
    let ended = bench.run_down(&ticket, &ReplayOutcome::Recovered)?;
    same("counts", outcome_counts(&ended), vec![(ItemOutcome::Recovered, 3)])
}

fn what_is_cancelled_is_over<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 3)?;
    let ticket = bench.run_of(replay_all())?;
    let claimed = bench.member(&ticket)?;
    let cancelled = steer(bench, &ticket.op_id, Steer::Cancel)?;
    same("status", cancelled.status, OperationStatus::Cancelled)?;
    same("finished", cancelled.finished_at, Some(bench.time.now()))?;
    same("begun", bench.members(&ticket, 1)?.claimed.len(), 0)?;
    bench.finish(&claimed.row.letter_id, claimed.row.fence, ReplayOutcome::Recovered)?;
    let counts = outcome_counts(&bench.operation(&ticket)?);
    same("counts", counts, vec![(ItemOutcome::Pending, 2), (ItemOutcome::Recovered, 1)])?;
    refused("take", take_as(bench, &ticket.op_id, "next", true)?, StoreErrorKind::Conflict)?;
    let resume = bench.store.steer(ticket.op_id, Steer::Resume, actor());
    refused("resume", attempt(resume)?, StoreErrorKind::Conflict)
}

fn a_steer_that_leads_nowhere_is_a_conflict<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let operation = bench.start(replay_all())?;
    let resume = bench.store.steer(operation.id.clone(), Steer::Resume, actor());
    refused("resume", attempt(resume)?, StoreErrorKind::Conflict)?;
    same("nothing changed", done(bench.store.operation(operation.id.clone()))?, Some(operation))?;
    let unknown = bench.store.steer("no such id".to_owned(), Steer::Cancel, actor());
    refused("unknown", attempt(unknown)?, StoreErrorKind::Invalid)
}

fn a_ramp_goes_one_ten_a_hundred<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 150)?;
    let mut request = replay_all();
    request.options.canary = true;
    let ticket = bench.run_of(request)?;
    for (stage, size) in [(1, 1), (10, 10), (100, 100), (1_000, 39)] {
        let members = bench.members(&ticket, 1_000)?;
        same("begun", members.claimed.len(), size)?;
        same("stage", members.operation.stage, Some(stage))?;
        let mut claimed = members.claimed;
        let last = claimed.pop();
        for one in claimed {
            bench.finish(&one.row.letter_id, one.row.fence, ReplayOutcome::Recovered)?;
        }
        let early = bench.members(&ticket, 1_000)?;
        same("before all results are in", (early.claimed.len(), early.next), (0, Next::Wait))?;
        if let Some(one) = last {
            bench.finish(&one.row.letter_id, one.row.fence, ReplayOutcome::Recovered)?;
        }
    }
    same("status", bench.members(&ticket, 1)?.operation.status, OperationStatus::Done)
}

fn a_ramp_stops_at_its_first_bad_stage<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 30)?;
    let mut request = replay_all();
    request.options.canary = true;
    let ticket = bench.run_of(request)?;
    let stopped = bench.run_down(&ticket, &ReplayOutcome::Failed(failure()))?;
    let wanted = vec![(ItemOutcome::Pending, 29), (ItemOutcome::StillFailing, 1)];
    same("counts", outcome_counts(&stopped), wanted)?;
    same("status", stopped.status, OperationStatus::Paused)?;
    same("note", stopped.note.as_deref(), Some("1 of 1 replays failed, the limit is a share of 0.5"))?;
    steer(bench, &ticket.op_id, Steer::Resume)?;
    let ticket = bench.take(&ticket.op_id)?;
    let again = bench.members(&ticket, 100)?;
    same("resumed", (again.claimed.len(), again.operation.stage), (1, Some(1)))
}

fn too_many_failures_pause_it_with_a_note<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 40)?;
    let ticket = bench.run_of(replay_all())?;
    for nth in 0..20 {
        let claimed = bench.member(&ticket)?;
        let outcome = if nth % 2 == 0 { ReplayOutcome::Failed(failure()) } else { ReplayOutcome::Recovered };
        bench.finish(&claimed.row.letter_id, claimed.row.fence, outcome)?;
    }
    let members = bench.members(&ticket, 1)?;
    same("begun", (members.claimed.len(), members.next), (0, Next::Over))?;
    let stopped = members.operation;
    same("status", (stopped.status, stopped.runner), (OperationStatus::Paused, None))?;
    same("note", stopped.note.as_deref(), Some("10 of 20 replays failed, the limit is a share of 0.5"))?;
    steer(bench, &ticket.op_id, Steer::Resume)?;
    let ticket = bench.take(&ticket.op_id)?;
    same("resumed", bench.members(&ticket, 5)?.claimed.len(), 5)
}

fn a_claim_looks_at_so_many_at_most<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    park_many(bench, 12)?;
    let ticket = bench.run_of(replay_all())?;
    let mut claim = MemberClaim::new(["store"], "checker");
    claim.look_at = 5;
    for pending in [7, 2] {
        let members = done(bench.store.claim_members(ticket.clone(), claim.clone(), actor()))?;
        same("next", members.next, Next::More)?;
        same("pending", members.operation.counts.pending(), pending)?;
    }
    let members = done(bench.store.claim_members(ticket, claim, actor()))?;
    same("counts", outcome_counts(&members.operation), vec![(ItemOutcome::Blocked, 12)])
}

fn an_operation_without_members_is_done<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let ticket = bench.run_of(replay_all())?;
    let members = bench.members(&ticket, 1)?;
    same("replay", (members.next, members.operation.status), (Next::Over, OperationStatus::Done))?;
    let ticket = bench.run_of(OperationRequest::new(Verb::Discard, Filter::all()))?;
    let operation = done(bench.store.advance(ticket, 1, actor()))?;
    same("discard", (operation.status, operation.finished_at), (OperationStatus::Done, Some(bench.time.now())))
}

fn operations_are_listed_the_newest_first<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(bench.start(replay_all())?.id);
        bench.time.advance(Duration::from_millis(1));
    }
    ids.reverse();
    let (mut listed, mut after) = (Vec::new(), None);
    for _ in 0..4 {
        let page = done(bench.store.operations(after.clone(), 2))?;
        after = page.last().map(|operation| operation.id.clone()).or(after);
        listed.extend(page.into_iter().map(|operation| operation.id));
    }
    same("operations", listed, ids)?;
    same("an unknown one", done(bench.store.operation("no such id".to_owned()))?, None)
}

fn requests_without_sense_are_refused<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let invalid = StoreErrorKind::Invalid;
    let mut request = replay_all();
    request.filter.states = vec![LetterState::Recovered];
    refused("plan", attempt(bench.store.plan(request.clone()))?, invalid)?;
    refused("start", attempt(bench.store.start(request, actor()))?, invalid)?;
    same("operations", done(bench.store.operations(None, 10))?.len(), 0)?;
    refused("take", take_as(bench, "no such id", "runner", false)?, invalid)?;
    let items = bench.store.items("no such id".to_owned(), None, None, 1);
    refused("items", attempt(items)?, invalid)?;
    let unknown = OperationTicket::new("no such id", 1);
    refused("keep", attempt(bench.store.keep(unknown, LEASE))?, invalid)?;
    park_many(bench, 1)?;
    let ticket = bench.run_of(replay_all())?;
    refused("advance", attempt(bench.store.advance(ticket.clone(), 1, actor()))?, invalid)?;
    let mut claim = MemberClaim::new(["fetch"], "checker");
    claim.limit = 0;
    refused("claim", attempt(bench.store.claim_members(ticket, claim, actor()))?, invalid)
}
