//! Bulk operations: members, and what becomes of them.

use super::model::Dice;
use super::support::{
    Bench, Check, LEASE, actor, attempt, checks, demand, done, failure, letter, refused, same, seconds, start,
};
use crate::dead_letter::{
    BulkOperations, Claimed, DeadLetter, Edit, EventQuery, Filter, ItemOutcome, LetterState, MAX_CRASHES, MemberClaim,
    Members, Next, Operation, OperationItem, OperationRequest, OperationStatus, OperationTicket, Payload, Release,
    ReplayOutcome, Verb,
};
use crate::error::StoreErrorKind;

pub(super) fn checks<S: BulkOperations>() -> Vec<Check<Bench<S>>> {
    checks![
        "B23" plan_count_and_members_agree,
        "B18" letters_that_come_later_are_no_members,
        "D21" members_are_frozen_and_not_read_again,
        "S2" what_changed_meanwhile_is_skipped,
        "D21" a_newer_payload_is_skipped_as_edited,
        "D21" a_result_and_its_outcome_are_one,
        "B19" a_member_is_replayed_once,
        "G105" what_waits_is_not_burned_and_comes_back,
        "D13" a_handler_that_did_not_start_gives_its_member_back,
        "B31" a_crash_gives_its_member_back_until_it_is_abandoned,
        "B31" a_released_member_is_pending_and_a_forced_one_is_not,
        "S1" a_late_result_changes_no_outcome,
        "B37" a_job_that_failed_twice_keeps_its_letter,
        "B20" discards_go_in_chunks_with_an_outcome_each,
        "S1" restores_grant_and_refuse_by_the_rules_of_letters,
        "S1" what_an_operation_does_stands_in_the_audit,
        "B29" counts_and_items_add_up_at_every_moment,
    ]
}

pub(super) fn replay_all() -> OperationRequest {
    OperationRequest::new(Verb::Replay, Filter::all())
}

pub(super) fn outcome_counts(operation: &Operation) -> Vec<(ItemOutcome, u64)> {
    operation.counts.iter().collect()
}

impl<S: BulkOperations> Bench<S> {
    pub(super) fn start(&self, request: OperationRequest) -> Result<Operation, String> {
        done(self.store.start(request, actor()))
    }

    pub(super) fn take(&self, op_id: &str) -> Result<OperationTicket, String> {
        let taken = done(self.store.take(op_id.to_owned(), "runner".to_owned(), LEASE, false, actor()))?;
        Ok(taken.ticket())
    }

    /// Starts and takes.
    pub(super) fn run_of(&self, request: OperationRequest) -> Result<OperationTicket, String> {
        let operation = self.start(request)?;
        self.take(&operation.id)
    }

    pub(super) fn members(&self, ticket: &OperationTicket, limit: u32) -> Result<Members, String> {
        let mut claim = MemberClaim::new(["fetch"], "checker");
        claim.limit = limit;
        claim.lease = LEASE;
        done(self.store.claim_members(ticket.clone(), claim, actor()))
    }

    pub(super) fn member(&self, ticket: &OperationTicket) -> Result<Claimed, String> {
        let mut members = self.members(ticket, 1)?;
        members.claimed.pop().ok_or_else(|| format!("no member was handed out: {:?}", members.next))
    }

    pub(super) fn operation(&self, ticket: &OperationTicket) -> Result<Operation, String> {
        let found = done(self.store.operation(ticket.op_id.clone()))?;
        found.ok_or_else(|| format!("operation {} is not there", ticket.op_id))
    }

    pub(super) fn all_items(&self, op_id: &str) -> Result<Vec<OperationItem>, String> {
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let page = done(self.store.items(op_id.to_owned(), None, after, 7))?;
            demand!(page.items.len() <= 7, "a page of {} members, 7 were asked for", page.items.len());
            items.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(items);
            }
        }
    }

    /// The item of a letter.
    pub(super) fn item(&self, op_id: &str, letter_id: &str) -> Result<OperationItem, String> {
        let items = self.all_items(op_id)?;
        let found = items.into_iter().find(|item| item.letter_id.as_deref() == Some(letter_id));
        found.ok_or_else(|| format!("letter {letter_id} is no member"))
    }

    /// Ends every member that is handed out, and the operation with them.
    pub(super) fn run_down(&self, ticket: &OperationTicket, outcome: &ReplayOutcome) -> Result<Operation, String> {
        for _ in 0..1_000 {
            let members = self.members(ticket, 3)?;
            if members.next == Next::Over {
                return Ok(members.operation);
            }
            for claimed in members.claimed {
                self.finish(&claimed.row.letter_id, claimed.row.fence, outcome.clone())?;
            }
        }
        Err("the operation never ends".to_owned())
    }
}

fn plan_count_and_members_agree<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    for n in 0..12_u64 {
        let mut sent = letter(&format!("job {n}"), start() + seconds(n));
        if n % 3 == 0 {
            sent.class = Some("timeout".to_owned());
            sent.disposition = crate::verdict::Disposition::Permanent;
        }
        if n % 4 == 0 {
            "store".clone_into(&mut sent.kind);
        }
        if n == 7 {
            sent.not_before = Some(start() + seconds(9_000));
        }
        bench.park(sent)?;
    }
    bench.time.set(start() + seconds(100));
    let abandoned = bench.park_job("worn")?;
    bench.wear_out(&abandoned)?;
    let running = bench.park_job("running")?;
    bench.claim_id(&running)?;
    let timeouts = Filter { classes: vec!["timeout".to_owned()], ..Filter::all() };
    let stores = Filter { kinds: vec!["store".to_owned()], since: Some(start() + seconds(3)), ..Filter::parked() };
    for filter in [Filter::all(), timeouts, stores] {
        for exclude in [false, true] {
            let mut request = OperationRequest::new(Verb::Replay, filter.clone());
            request.options.exclude_permanent = exclude;
            let members = request.members().map_err(|error| error.to_string())?;
            let count = done(bench.store.count(members))?;
            let before = done(bench.store.operations(None, 100))?.len();
            let plan = done(bench.store.plan(request.clone()))?;
            same("operations after a plan", done(bench.store.operations(None, 100))?.len(), before)?;
            same("plan and count", plan.matched, count)?;
            same("the plan's groups", plan.groups.iter().map(|group| group.n).sum(), plan.matched)?;
            same("the plan's sample", plan.sample.len() as u64, plan.matched.min(5))?;
            let operation = bench.start(request)?;
            same("members and count", operation.counts.total(), count)?;
            same("pending", operation.counts.pending(), count)?;
            same("items", bench.all_items(&operation.id)?.len() as u64, count)?;
        }
    }
    let plan = done(bench.store.plan(replay_all()))?;
    same("left out", (plan.abandoned, plan.under_way, plan.excluded), (1, 1, 0))?;
    let text = "7 rate limits: likely to pass; 1 rate limit: earliest 05:34 UTC; \
                4 permanent: will fail again unless edited or forced; \
                1 abandoned: not included, restore them first; 1 under way: not included";
    same("the plan", plan.to_string().as_str(), text)
}

fn letters_that_come_later_are_no_members<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let first = bench.park_job("a")?;
    let operation = bench.start(replay_all())?;
    let later = bench.park_job("b")?;
    same("the cutoff", operation.cutoff_seq, bench.row(&first)?.seq)?;
    let ticket = bench.take(&operation.id)?;
    let ended = bench.run_down(&ticket, &ReplayOutcome::Recovered)?;
    same("counts", outcome_counts(&ended), vec![(ItemOutcome::Recovered, 1)])?;
    same("the operation", ended.status, OperationStatus::Done)?;
    same("the later letter", bench.row(&later)?.state, LetterState::Parked)
}

/// Both ways: what no longer matches is still a member, and what matches by now is none.
fn members_are_frozen_and_not_read_again<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let of_class = |job: &str, class: &str, at| {
        let mut sent = letter(job, at);
        sent.class = Some(class.to_owned());
        sent
    };
    let member = bench.park(of_class("a", "timeout", start()))?;
    let other = bench.park(of_class("b", "refused", start()))?;
    let filter = Filter { classes: vec!["timeout".to_owned()], ..Filter::all() };
    let operation = bench.start(OperationRequest::new(Verb::Replay, filter))?;
    bench.time.advance(seconds(1));
    bench.park(of_class("a", "refused", bench.time.now()))?;
    bench.park(of_class("b", "timeout", bench.time.now()))?;
    let ticket = bench.take(&operation.id)?;
    let ended = bench.run_down(&ticket, &ReplayOutcome::Recovered)?;
    same("counts", outcome_counts(&ended), vec![(ItemOutcome::Recovered, 1)])?;
    same("the frozen member", bench.row(&member)?.state, LetterState::Recovered)?;
    same("the letter that matches by now", bench.row(&other)?.state, LetterState::Parked)
}

/// As in the trial of the design: ten planned, ten frozen, one closed meanwhile.
fn what_changed_meanwhile_is_skipped<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let mut ids = Vec::new();
    for n in 0..10 {
        ids.push(bench.park_job(&format!("job {n}"))?);
    }
    same("planned", done(bench.store.plan(replay_all()))?.matched, 10)?;
    let ticket = bench.run_of(replay_all())?;
    let closed = ids.get(4).cloned().unwrap_or_default();
    done(bench.store.discard(closed.clone(), actor()))?;
    let ended = bench.run_down(&ticket, &ReplayOutcome::Recovered)?;
    same("counts", outcome_counts(&ended), vec![(ItemOutcome::Recovered, 9), (ItemOutcome::Changed, 1)])?;
    same("skipped", ended.counts.skipped(), 1)?;
    let item = bench.item(&ticket.op_id, &closed)?;
    same("why", item.detail.as_deref(), Some("the letter is discarded"))
}

fn a_newer_payload_is_skipped_as_edited<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let ticket = bench.run_of(replay_all())?;
    bench.time.advance(seconds(1));
    let edited = DeadLetter { payload: Payload::Json("\"new\"".to_owned()), ..letter("a", bench.time.now()) };
    bench.park(edited)?;
    let by_hand = bench.park_job("b")?;
    let other = bench.run_of(replay_all())?;
    let edit = Edit::new(&by_hand, bench.row(&by_hand)?.payload_revision, "\"by hand\"");
    done(bench.store.edit(edit, actor()))?;
    let claimed = bench.members(&other, 10)?.claimed;
    same("frozen after the edit", claimed.iter().map(|claimed| claimed.row.letter_id.as_str()).collect(), vec![&*id])?;
    same("edited by hand", bench.item(&other.op_id, &by_hand)?.outcome, ItemOutcome::Edited)?;
    let fence = claimed.first().map_or(0, |claimed| claimed.row.fence);
    bench.release(&id, Release::Held { fence })?.map_err(|error| error.to_string())?;
    let members = bench.members(&ticket, 10)?;
    same("handed out", members.claimed.len(), 0)?;
    same("counts", outcome_counts(&members.operation), vec![(ItemOutcome::Edited, 1)])?;
    let row = bench.row(&id)?;
    same("the letter", (row.state, row.replays, row.fence), (LetterState::Parked, 0, 1))
}

fn a_result_and_its_outcome_are_one<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    for job in ["a", "b", "c"] {
        bench.park_job(job)?;
    }
    let ticket = bench.run_of(replay_all())?;
    let results = [
        (ReplayOutcome::Recovered, ItemOutcome::Recovered, None),
        (ReplayOutcome::Gone(failure()), ItemOutcome::Gone, Some("gone:403")),
        (ReplayOutcome::Failed(failure()), ItemOutcome::StillFailing, Some("permanent:403")),
    ];
    for (nth, (result, wanted, detail)) in results.into_iter().enumerate() {
        let claimed = bench.member(&ticket)?;
        let id = claimed.row.letter_id;
        same("during", bench.item(&ticket.op_id, &id)?.outcome, ItemOutcome::Running)?;
        bench.time.advance(seconds(1));
        bench.finish(&id, claimed.row.fence, result)?;
        let item = bench.item(&ticket.op_id, &id)?;
        same("after", (item.outcome, item.detail.as_deref()), (wanted, detail))?;
        same("when", item.at, Some(bench.time.now()))?;
        same("results", bench.operation(&ticket)?.counts.results(), nth as u64 + 1)?;
    }
    same("over", bench.members(&ticket, 1)?.operation.status, OperationStatus::Done)
}

fn a_member_is_replayed_once<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    for n in 0..5 {
        bench.park_job(&format!("job {n}"))?;
    }
    let mut request = replay_all();
    request.options.stop_ratio = None;
    let ticket = bench.run_of(request)?;
    let ended = bench.run_down(&ticket, &ReplayOutcome::Failed(failure()))?;
    same("counts", outcome_counts(&ended), vec![(ItemOutcome::StillFailing, 5)])?;
    let page = done(bench.store.list(Filter::parked(), crate::dead_letter::PageRequest::default()))?;
    same("replays", page.rows.iter().map(|row| row.replays).collect(), vec![1; 5])
}

fn what_waits_is_not_burned_and_comes_back<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let blocked = bench.park(DeadLetter { kind: "store".to_owned(), ..letter("a", start()) })?;
    let late = bench.park(DeadLetter { not_before: Some(start() + seconds(500)), ..letter("b", start()) })?;
    let ticket = bench.run_of(replay_all())?;
    let members = bench.members(&ticket, 10)?;
    same("handed out", (members.claimed.len(), members.next), (0, Next::Over))?;
    let operation = members.operation;
    same("counts", outcome_counts(&operation), vec![(ItemOutcome::Blocked, 1), (ItemOutcome::NotDue, 1)])?;
    same("status", operation.status, OperationStatus::Paused)?;
    demand!(operation.note.is_some(), "no note says what it waits for");
    for id in [&blocked, &late] {
        let row = bench.row(id)?;
        same("burned", (row.state, row.replays, row.fence), (LetterState::Parked, 0, 0))?;
    }
    let why = bench.item(&ticket.op_id, &blocked)?.detail;
    same("why", why.as_deref(), Some("no handler for `store`"))?;
    bench.time.advance(seconds(500));
    done(bench.store.steer(ticket.op_id.clone(), crate::dead_letter::Steer::Resume, actor()))?;
    let ticket = bench.take(&ticket.op_id)?;
    same("pending again", bench.operation(&ticket)?.counts.pending(), 2)?;
    let mut claim = MemberClaim::new(["fetch", "store"], "checker");
    claim.limit = 10;
    let members = done(bench.store.claim_members(ticket, claim, actor()))?;
    same("handed out", members.claimed.len(), 2)
}

fn a_handler_that_did_not_start_gives_its_member_back<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let before = bench.row(&id)?;
    let ticket = bench.run_of(replay_all())?;
    let claimed = bench.member(&ticket)?;
    let stale = bench.store.not_started(ticket.clone(), id.clone(), claimed.row.fence + 1, "no".to_owned(), actor());
    refused("by another fence", attempt(stale)?, StoreErrorKind::StaleLease)?;
    let why = "no such command".to_owned();
    let row = done(bench.store.not_started(ticket.clone(), id.clone(), claimed.row.fence, why, actor()))?;
    same("state", row.state, LetterState::Parked)?;
    let counts = |row: &crate::dead_letter::LetterRow| (row.replays, row.crashes, row.attempts);
    same("counts", counts(&row), counts(&before))?;
    let item = bench.item(&ticket.op_id, &id)?;
    same("item", (item.outcome, item.detail.as_deref()), (ItemOutcome::NotStarted, Some("no such command")))?;
    same("over", bench.members(&ticket, 1)?.operation.status, OperationStatus::Paused)
}

fn a_crash_gives_its_member_back_until_it_is_abandoned<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let ticket = bench.run_of(replay_all())?;
    for crash in 1..=MAX_CRASHES {
        same("handed out", bench.members(&ticket, 1)?.claimed.len(), 1)?;
        same("under way", bench.members(&ticket, 1)?.next, Next::Wait)?;
        bench.time.advance(LEASE + seconds(1));
        done(bench.store.reap(actor()))?;
        let wanted = if crash < MAX_CRASHES { ItemOutcome::Pending } else { ItemOutcome::Abandoned };
        same(&format!("after crash {crash}"), bench.item(&ticket.op_id, &id)?.outcome, wanted)?;
        same("counts", outcome_counts(&bench.operation(&ticket)?), vec![(wanted, 1)])?;
    }
    let members = bench.members(&ticket, 1)?;
    same("over", (members.claimed.len(), members.operation.status), (0, OperationStatus::Done))
}

fn a_released_member_is_pending_and_a_forced_one_is_not<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let ticket = bench.run_of(replay_all())?;
    let fence = bench.member(&ticket)?.row.fence;
    bench.release(&id, Release::Held { fence })?.map_err(|error| error.to_string())?;
    same("given back", bench.item(&ticket.op_id, &id)?.outcome, ItemOutcome::Pending)?;
    let fence = bench.member(&ticket)?.row.fence;
    bench.store.give_back(&id, fence);
    // A store does that in its own time.
    for _ in 0..1_000 {
        if bench.item(&ticket.op_id, &id)?.outcome != ItemOutcome::Running {
            break;
        }
        std::thread::yield_now();
    }
    bench.member(&ticket)?;
    bench.release(&id, Release::Forced)?.map_err(|error| error.to_string())?;
    same("forced", bench.item(&ticket.op_id, &id)?.outcome, ItemOutcome::Changed)?;
    same("over", bench.members(&ticket, 1)?.next, Next::Over)
}

fn a_late_result_changes_no_outcome<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let ticket = bench.run_of(replay_all())?;
    let claimed = bench.member(&ticket)?;
    bench.time.advance(LEASE + seconds(1));
    done(bench.store.reap(actor()))?;
    let late = crate::dead_letter::Finish::new(&id, claimed.row.fence, ReplayOutcome::Recovered);
    refused("late", attempt(bench.store.finish(late, actor()))?, StoreErrorKind::StaleLease)?;
    same("item", bench.item(&ticket.op_id, &id)?.outcome, ItemOutcome::Pending)
}

fn a_job_that_failed_twice_keeps_its_letter<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    for replay in 1..=2 {
        let mut request = replay_all();
        request.options.stop_ratio = None;
        let ticket = bench.run_of(request)?;
        let ended = bench.run_down(&ticket, &ReplayOutcome::Failed(failure()))?;
        same("counts", outcome_counts(&ended), vec![(ItemOutcome::StillFailing, 1)])?;
        same("replays", bench.row(&id)?.replays, replay)?;
    }
    same("letters", done(bench.store.count(Filter::all()))?, 1)
}

fn discards_go_in_chunks_with_an_outcome_each<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(bench.park_job(&format!("job {n}"))?);
    }
    let ticket = bench.run_of(OperationRequest::new(Verb::Discard, Filter::all()))?;
    bench.replay(ids.get(1).map_or("", String::as_str), ReplayOutcome::Recovered)?;
    let first = done(bench.store.advance(ticket.clone(), 3, actor()))?;
    same("status", first.status, OperationStatus::Running)?;
    same("pending", first.counts.pending(), 2)?;
    let operation = done(bench.store.advance(ticket.clone(), 3, actor()))?;
    same("status", operation.status, OperationStatus::Done)?;
    same("counts", outcome_counts(&operation), vec![(ItemOutcome::Discarded, 4), (ItemOutcome::Changed, 1)])?;
    same("discarded", done(bench.store.count(Filter { states: vec![LetterState::Discarded], ..Filter::all() }))?, 4)?;
    let claim = bench.store.claim_members(ticket, MemberClaim::new(["fetch"], "checker"), actor());
    refused("a claim of a discard", attempt(claim)?, StoreErrorKind::Invalid)
}

fn restores_grant_and_refuse_by_the_rules_of_letters<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let worn = bench.park_job("worn")?;
    bench.wear_out(&worn)?;
    let recovered = bench.park_job("recovered")?;
    bench.replay(&recovered, ReplayOutcome::Recovered)?;
    let none = bench.run_of(OperationRequest::new(Verb::Restore { more_replays: 0 }, Filter::all()))?;
    let operation = done(bench.store.advance(none.clone(), 10, actor()))?;
    same("without a grant", outcome_counts(&operation), vec![(ItemOutcome::Refused, 1)])?;
    demand!(bench.item(&none.op_id, &worn)?.detail.is_some(), "no detail says why it was refused");
    same("state", bench.row(&worn)?.state, LetterState::Abandoned)?;
    let ticket = bench.run_of(OperationRequest::new(Verb::Restore { more_replays: 2 }, Filter::all()))?;
    let operation = done(bench.store.advance(ticket, 10, actor()))?;
    same("with a grant", outcome_counts(&operation), vec![(ItemOutcome::Restored, 1)])?;
    let row = bench.row(&worn)?;
    same("row", (row.state, row.max_replays), (LetterState::Parked, row.replays + 2))?;
    same("nobody meant it", bench.row(&recovered)?.state, LetterState::Recovered)
}

fn what_an_operation_does_stands_in_the_audit<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    let first = bench.park_job("a")?;
    bench.park_job("b")?;
    let ticket = bench.run_of(replay_all())?;
    let claimed = bench.member(&ticket)?;
    bench.finish(&first, claimed.row.fence, ReplayOutcome::Recovered)?;
    bench.member(&ticket)?;
    bench.time.advance(LEASE + seconds(1));
    bench.run_down(&ticket, &ReplayOutcome::Recovered)?;
    let restore = OperationRequest::new(
        Verb::Restore { more_replays: 2 },
        Filter { states: vec![LetterState::Recovered], ..Filter::all() },
    );
    let restored = bench.run_of(restore)?;
    done(bench.store.advance(restored.clone(), 10, actor()))?;
    let whats = |op_id: &str| -> Result<Vec<String>, String> {
        let page = done(bench.store.events(EventQuery::operation(op_id).oldest_first().limit(100)))?;
        Ok(page.events.into_iter().map(|event| event.what).collect())
    };
    let replay = ["claimed", "replayed", "claimed", "lease_expired", "claimed", "replayed"];
    let mut wanted = vec!["operation_started", "operation_running"];
    wanted.extend(replay);
    wanted.push("operation_done");
    same("of the replay", whats(&ticket.op_id)?.iter().map(String::as_str).collect::<Vec<_>>(), wanted)?;
    let wanted = vec!["operation_started", "operation_running", "restored", "restored", "operation_done"];
    same("of the restore", whats(&restored.op_id)?.iter().map(String::as_str).collect::<Vec<_>>(), wanted)?;
    let page = done(bench.store.events(EventQuery::letter(&first).oldest_first()))?;
    let of_letter = page.events.iter().map(|event| (event.what.as_str(), event.operation.as_deref())).collect();
    let (replay, restore) = (Some(ticket.op_id.as_str()), Some(restored.op_id.as_str()));
    let wanted = vec![("parked", None), ("claimed", replay), ("replayed", replay), ("restored", restore)];
    same::<Vec<_>>("of a letter", of_letter, wanted)
}

fn counts_and_items_add_up_at_every_moment<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    for n in 0..20 {
        bench.park_job(&format!("job {n}"))?;
    }
    let ticket = bench.run_of(replay_all())?;
    let mut dice = Dice(7);
    let mut held: Vec<Claimed> = Vec::new();
    for step in 0..80 {
        match dice.roll(5) {
            0 | 1 => held.extend(bench.members(&ticket, u32::try_from(dice.roll(3) + 1).unwrap_or(1))?.claimed),
            2 => {
                if let Some(claimed) = held.pop() {
                    let outcome =
                        if dice.roll(3) == 0 { ReplayOutcome::Failed(failure()) } else { ReplayOutcome::Recovered };
                    // It may be late by now.
                    let result = crate::dead_letter::Finish::new(&claimed.row.letter_id, claimed.row.fence, outcome);
                    drop(attempt(bench.store.finish(result, actor()))?);
                }
            }
            3 => {
                bench.time.advance(seconds(dice.roll(40)));
                done(bench.store.reap(actor()))?;
            }
            _ => {
                if let Some(claimed) = held.pop() {
                    drop(bench.release(&claimed.row.letter_id, Release::Held { fence: claimed.row.fence })?);
                }
            }
        }
        let operation = bench.operation(&ticket)?;
        same(&format!("members at step {step}"), operation.counts.total(), 20)?;
        let items = bench.all_items(&ticket.op_id)?;
        for outcome in ItemOutcome::ALL {
            let n = items.iter().filter(|item| item.outcome == *outcome).count() as u64;
            same(&format!("{outcome} at step {step}"), operation.counts.get(*outcome), n)?;
            let page = done(bench.store.items(ticket.op_id.clone(), Some(*outcome), None, 100))?;
            same(&format!("items {outcome} at step {step}"), page.items.len() as u64, n)?;
        }
        let replaying = Filter { states: vec![LetterState::Replaying], ..Filter::all() };
        same(&format!("running at step {step}"), done(bench.store.count(replaying))?, operation.counts.running())?;
    }
    Ok(())
}
