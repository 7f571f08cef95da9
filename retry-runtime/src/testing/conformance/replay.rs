//! Claims, fences and results.

use super::support::{
    Bench, Check, LEASE, actor, attempt, checks, demand, done, failure, letter, refused, same, seconds, start,
    usual_claim,
};
use crate::attempt::AttemptRecord;
use crate::dead_letter::{
    AttemptOutcome, ClaimRequest, DeadLetter, DeadLetterStore, Failure, Filter, Finish, LetterState, Order,
    PageRequest, Payload, Release, ReplayOutcome,
};
use crate::error::StoreErrorKind;
use crate::stop::StopReason;

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks![
        "D16" a_claim_takes_its_kinds_only,
        "D16" a_claim_without_kinds_is_refused,
        "D16" a_claim_obeys_filter_and_limit,
        "D16" a_claim_takes_the_letters_due_longest_first,
        "D12" a_server_hint_is_obeyed_unless_forced,
        "D9" a_claim_leaves_out_what_cannot_be_replayed_where_asked,
        "D13" a_claim_that_nobody_hears_leaves_no_lease,
        "D12" the_replay_backoff_is_obeyed_unless_ignored,
        "S1" a_claimed_letter_is_leased,
        "S1" the_fence_rises_with_each_claim,
        "S1" two_claimers_never_get_the_same_letter,
        "S1" a_late_result_is_recorded_and_changes_nothing,
        "S1" a_result_without_a_claim_is_stale,
        "S1" a_second_result_is_stale,
        "B1.8" a_success_is_recovered_with_its_time,
        "D12" a_failure_stays_parked,
        "D12" max_replays_abandons_a_permanent_failure_no_earlier,
        "D12" an_abandoned_letter_is_not_claimed,
        "B1.8" a_failed_letter_goes_behind_those_unseen_longer,
        "D12" a_gone_answer_closes_the_letter,
        "D12" a_hint_of_a_replay_is_kept,
        "D4" a_live_failure_during_a_replay_stays_owed,
        "D4" a_live_failure_before_a_replay_does_not_count_against_it,
        "D11" the_idempotency_key_is_the_same_at_every_replay,
        "D20" a_replay_reports_its_body_runs,
        "11.6" a_replay_adds_to_the_history,
        "D22" an_unknown_letter_is_invalid,
    ]
}

fn claimed_jobs<S: DeadLetterStore>(bench: &Bench<S>, request: ClaimRequest) -> Result<Vec<String>, String> {
    let mut jobs: Vec<_> = bench.claim(request)?.into_iter().map(|claimed| claimed.row.job_id).collect();
    jobs.sort();
    Ok(jobs)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn a_claim_takes_its_kinds_only<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    bench.park_job("a")?;
    for kind in ["store", "send"] {
        bench.park(DeadLetter { kind: kind.to_owned(), ..letter(kind, start()) })?;
    }
    let mut request = usual_claim();
    request.kinds = names(&["fetch", "send"]);
    same("jobs", claimed_jobs(bench, request)?, names(&["a", "send"]))?;
    same("still parked", done(bench.store.count(Filter::parked()))?, 1)
}

fn a_claim_without_kinds_is_refused<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    bench.park_job("a")?;
    let request = ClaimRequest::new(Vec::<String>::new(), "checker");
    refused("a claim without kinds", attempt(bench.store.claim(request, actor()))?, StoreErrorKind::Invalid)
}

fn a_claim_obeys_filter_and_limit<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    for job in ["a", "b", "c", "d"] {
        bench.park_job(job)?;
    }
    let mut request = usual_claim();
    request.filter.job_ids = names(&["b", "c"]);
    // The states of a claim's filter do not matter: it takes parked letters.
    request.filter.states = vec![LetterState::Recovered];
    same("jobs of the filter", claimed_jobs(bench, request)?, names(&["b", "c"]))?;
    let mut request = usual_claim();
    request.limit = 1;
    same("letters within the limit", bench.claim(request)?.len(), 1)?;
    same("the rest", bench.claim(usual_claim())?.len(), 1)?;
    same("nothing left", bench.claim(usual_claim())?.len(), 0)
}

fn a_claim_takes_the_letters_due_longest_first<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    for (job, due) in [("a", Some(90)), ("b", None), ("c", Some(30)), ("d", None)] {
        let not_before = due.map(|due| start() + seconds(due));
        bench.park(DeadLetter { not_before, ..letter(job, start()) })?;
    }
    bench.time.advance(seconds(100));
    let mut request = usual_claim();
    request.limit = 1;
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.extend(claimed_jobs(bench, request.clone())?);
    }
    same("jobs in order", jobs, names(&["b", "d", "c", "a"]))
}

fn a_server_hint_is_obeyed_unless_forced<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    bench.park(DeadLetter { not_before: Some(start() + seconds(100)), ..letter("a", start()) })?;
    let mut request = usual_claim();
    request.ignore_backoff = true;
    same("before it is due", bench.claim(request.clone())?.len(), 0)?;
    bench.time.advance(seconds(100));
    let claimed = bench.claim(request)?;
    same("once it is due", claimed.len(), 1)?;
    bench.park(DeadLetter { not_before: Some(start() + seconds(300)), ..letter("b", start()) })?;
    let mut forced = usual_claim();
    forced.ignore_not_before = true;
    same("forced", bench.claim(forced)?.len(), 1)
}

fn a_claim_leaves_out_what_cannot_be_replayed_where_asked<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let broken = || Payload::Unserializable("key must be a string".to_owned());
    let altered = DeadLetter { payload_altered: true, ..letter("altered", start()) };
    let altered = bench.park(altered)?;
    let without = bench.park(DeadLetter { payload: broken(), ..letter("without", start()) })?;
    bench.park(DeadLetter { payload: Payload::None, ..letter("none", start()) })?;
    let older = bench.park(letter("older", start()))?;
    bench.park(DeadLetter { payload: broken(), ..letter("older", start() + seconds(1)) })?;
    for id in [&altered, &without, &older] {
        same("whether it can be replayed", bench.row(id)?.is_replayable(), *id == older)?;
    }
    let careful = ClaimRequest { replayable_only: true, ..usual_claim() };
    let named = ClaimRequest { filter: Filter::id(altered.clone()), ..careful.clone() };
    same("the altered one by its name", claimed_jobs(bench, named)?, names(&[]))?;
    same("what can be replayed", claimed_jobs(bench, careful.clone())?, names(&["none", "older"]))?;
    same("once more", claimed_jobs(bench, careful.clone())?, names(&[]))?;
    let edit = crate::dead_letter::Edit::new(altered, 1, "2");
    done(bench.store.edit(edit, actor()))?;
    same("once it was edited", claimed_jobs(bench, careful)?, names(&["altered"]))?;
    same("the rest, if not asked", claimed_jobs(bench, usual_claim())?, names(&["without"]))
}

/// Whoever claims may be gone before the store has answered: half-way in its queue, or with the answer there already.
fn a_claim_that_nobody_hears_leaves_no_lease<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    for job in ["a", "b"] {
        bench.park_job(job)?;
    }
    for polls in 0..20_u32 {
        let mut claim = bench.store.claim(ClaimRequest { keep_alive: true, ..usual_claim() }, actor());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let heard = claim.as_mut().poll(&mut context);
        if let std::task::Poll::Ready(claimed) = heard {
            for claimed in claimed.map_err(|error| error.to_string())? {
                let release = Release::Held { fence: claimed.row.fence };
                bench.release(&claimed.row.letter_id, release)?.map_err(|error| error.to_string())?;
            }
        }
        if polls % 2 == 0 {
            // Behind this the answer to the claim is there.
            done(bench.store.reap(actor()))?;
        }
        drop(claim);
        // What nobody heard is given back without anybody's help: at the latest behind what is asked for now.
        done(bench.store.reap(actor()))?;
        done(bench.store.reap(actor()))?;
        let mut replaying = Filter::all();
        replaying.states.push(LetterState::Replaying);
        same("leased to nobody", done(bench.store.count(replaying))?, 0)?;
    }
    same("crashes", bench.row(&bench.park_job("a")?)?.crashes, 0)
}

fn the_replay_backoff_is_obeyed_unless_ignored<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let row = bench.replay(&id, ReplayOutcome::Failed(failure()))?;
    same("back-off", row.replay_after, Some(start() + seconds(60)))?;
    same("during the back-off", bench.claim(usual_claim())?.len(), 0)?;
    let mut manual = usual_claim();
    manual.ignore_backoff = true;
    same("ignoring it", bench.claim(manual)?.len(), 1)?;
    let claimed = bench.row(&id)?;
    bench.finish(&id, claimed.fence, ReplayOutcome::Failed(failure()))?;
    bench.time.advance(seconds(120));
    same("after it", bench.claim(usual_claim())?.len(), 1)
}

fn a_claimed_letter_is_leased<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let claimed = bench.claim_id(&id)?;
    for row in [claimed.row, bench.row(&id)?] {
        same("state", row.state, LetterState::Replaying)?;
        same("owner", row.owner.as_deref(), Some("checker"))?;
        same("lease", row.lease_until, Some(start() + LEASE))?;
        same("fence", row.fence, 1)?;
        same("replays", row.replays, 0)?;
    }
    same("payload", claimed.payload, letter("a", start()).payload)
}

fn the_fence_rises_with_each_claim<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    for fence in 1..=3 {
        let claimed = bench.claim_id(&id)?;
        same("fence", claimed.row.fence, fence)?;
        bench.finish(&id, fence, ReplayOutcome::Failed(failure()))?;
    }
    Ok(())
}

fn two_claimers_never_get_the_same_letter<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    const LETTERS: usize = 40;
    for n in 0..LETTERS {
        bench.park_job(&format!("job {n}"))?;
    }
    let claimer = || {
        let mut got = Vec::new();
        loop {
            let mut request = usual_claim();
            request.limit = 3;
            let claimed = bench.claim(request)?;
            if claimed.is_empty() {
                return Ok::<_, String>(got);
            }
            got.extend(claimed.into_iter().map(|claimed| claimed.row.letter_id));
        }
    };
    let got = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(claimer)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "a claimer panicked".to_owned())?);
        joined.collect::<Result<Vec<_>, _>>()
    })?;
    let mut ids: Vec<_> = got.into_iter().flatten().collect();
    same("letters handed out", ids.len(), LETTERS)?;
    ids.sort();
    ids.dedup();
    same("distinct letters handed out", ids.len(), LETTERS)
}

fn a_late_result_is_recorded_and_changes_nothing<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let slow = bench.claim_id(&id)?;
    bench.time.advance(LEASE + seconds(1));
    let quick = bench.claim_id(&id)?;
    demand!(quick.row.fence > slow.row.fence, "the second claim has no higher fence");
    let before = bench.detail(&id)?;
    let late = Finish::new(&id, slow.row.fence, ReplayOutcome::Recovered);
    refused("the late result", attempt(bench.store.finish(late, actor()))?, StoreErrorKind::StaleLease)?;
    let after = bench.detail(&id)?;
    same("the letter", after.row, before.row)?;
    same("entries", after.history.len(), before.history.len() + 1)?;
    let last = after.history.last().map(|entry| (entry.late, entry.outcome, entry.fence));
    same("the last entry", last, Some((true, AttemptOutcome::Succeeded, Some(slow.row.fence))))?;
    // The present holder is not disturbed.
    same("state", bench.finish(&id, quick.row.fence, ReplayOutcome::Recovered)?.state, LetterState::Recovered)
}

fn a_result_without_a_claim_is_stale<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let result = Finish::new(&id, 0, ReplayOutcome::Recovered);
    refused("the result", attempt(bench.store.finish(result, actor()))?, StoreErrorKind::StaleLease)?;
    same("state", bench.row(&id)?.state, LetterState::Parked)
}

fn a_second_result_is_stale<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let row = bench.replay(&id, ReplayOutcome::Recovered)?;
    let again = Finish::new(&id, row.fence, ReplayOutcome::Failed(failure()));
    refused("the second result", attempt(bench.store.finish(again, actor()))?, StoreErrorKind::StaleLease)?;
    same("the letter", bench.row(&id)?, row)
}

fn a_success_is_recovered_with_its_time<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let claimed = bench.claim_id(&id)?;
    bench.time.advance(seconds(3));
    let row = bench.finish(&id, claimed.row.fence, ReplayOutcome::Recovered)?;
    same("the letter as returned", &row, &bench.row(&id)?)?;
    same("state", row.state, LetterState::Recovered)?;
    same("closed_at", row.closed_at, Some(start() + seconds(3)))?;
    same("lease", row.lease_until, None)?;
    same("owner", row.owner, None)?;
    same("replays", row.replays, 1)?;
    same("crashes", row.crashes, 0)?;
    // What the job died of stays readable.
    same("error_class", row.error_class.as_str(), "exhausted:429")
}

fn a_failure_stays_parked<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.time.advance(seconds(7));
    let row = bench.replay(&id, ReplayOutcome::Failed(failure()))?;
    same("the letter as returned", &row, &bench.row(&id)?)?;
    same("state", row.state, LetterState::Parked)?;
    same("closed_at", row.closed_at, None)?;
    same("lease", row.lease_until, None)?;
    same("error_class", row.error_class.as_str(), "permanent:403")?;
    same("error_message", row.error_message.as_str(), "forbidden")?;
    same("last_seen", row.last_seen, start() + seconds(7))?;
    same("first_seen", row.first_seen, start())?;
    same("replays", row.replays, 1)
}

fn max_replays_abandons_a_permanent_failure_no_earlier<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    for replay in 1..=crate::dead_letter::MAX_REPLAYS {
        bench.time.advance(seconds(1));
        let row = bench.replay(&id, ReplayOutcome::Failed(failure()))?;
        let wanted =
            if replay < crate::dead_letter::MAX_REPLAYS { LetterState::Parked } else { LetterState::Abandoned };
        same(&format!("state after failed replay {replay}"), row.state, wanted)?;
        same("closed", row.closed_at.is_some(), wanted.is_closed())?;
    }
    Ok(())
}

fn an_abandoned_letter_is_not_claimed<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.wear_out(&id)?;
    let mut request = usual_claim();
    request.ignore_backoff = true;
    request.ignore_not_before = true;
    same("letters", bench.claim(request)?.len(), 0)
}

fn a_failed_letter_goes_behind_those_unseen_longer<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let first = bench.park_job("a")?;
    bench.time.advance(seconds(1));
    let second = bench.park_job("b")?;
    bench.time.advance(seconds(1));
    bench.replay(&first, ReplayOutcome::Failed(failure()))?;
    let page = PageRequest::first(Order::LongestUnseenFirst, 10);
    let page = done(bench.store.list(Filter::parked(), page))?;
    same("order", page.rows.into_iter().map(|row| row.letter_id).collect(), vec![second, first])
}

fn a_gone_answer_closes_the_letter<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let gone = Failure { code: Some(404), ..failure() };
    let row = bench.replay(&id, ReplayOutcome::Gone(gone))?;
    same("state", row.state, LetterState::Discarded)?;
    same("reason", row.reason, StopReason::Gone)?;
    same("error_class", row.error_class.as_str(), "gone:404")?;
    demand!(row.closed_at.is_some(), "no closed_at");
    same("owed", done(bench.store.count(Filter::owed()))?, 0)
}

fn a_hint_of_a_replay_is_kept<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let hint = Some(start() + seconds(500));
    let row = bench.replay(&id, ReplayOutcome::Failed(Failure { not_before: hint, ..failure() }))?;
    same("not_before", row.not_before, hint)?;
    let mut request = usual_claim();
    request.ignore_backoff = true;
    same("before it is due", bench.claim(request)?.len(), 0)
}

fn a_live_failure_during_a_replay_stays_owed<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    for outcome in [ReplayOutcome::Recovered, ReplayOutcome::Gone(failure())] {
        let id = bench.park_job("a")?;
        let claimed = bench.claim_id(&id)?;
        bench.time.advance(seconds(1));
        let mut live = letter("a", bench.time.now());
        live.error_message = "live".into();
        bench.park(live)?;
        let during = bench.row(&id)?;
        same("state during the replay", during.state, LetterState::Replaying)?;
        same("failed_again", during.failed_again, true)?;
        same("fence", during.fence, claimed.row.fence)?;
        let row = bench.finish(&id, claimed.row.fence, outcome)?;
        same("state", row.state, LetterState::Parked)?;
        same("error_message", row.error_message.as_str(), "live")?;
        same("failed_again", row.failed_again, false)?;
    }
    Ok(())
}

fn a_live_failure_before_a_replay_does_not_count_against_it<S: DeadLetterStore>(
    bench: &Bench<S>,
) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let first = bench.claim_id(&id)?;
    bench.time.advance(seconds(1));
    bench.park_job("a")?;
    bench.finish(&id, first.row.fence, ReplayOutcome::Failed(failure()))?;
    same("state", bench.replay(&id, ReplayOutcome::Recovered)?.state, LetterState::Recovered)
}

fn the_idempotency_key_is_the_same_at_every_replay<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let first = bench.claim_id(&id)?;
    bench.finish(&id, first.row.fence, ReplayOutcome::Failed(failure()))?;
    let second = bench.claim_id(&id)?;
    same("key", second.row.idempotency_key(), first.row.idempotency_key())?;
    demand!(second.row.fence != first.row.fence, "the fence did not change");
    Ok(())
}

fn a_replay_reports_its_body_runs<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let claimed = bench.claim_id(&id)?;
    let mut result = Finish::new(&id, claimed.row.fence, ReplayOutcome::Failed(failure()));
    result.attempts = 3;
    let row = done(bench.store.finish(result, actor()))?;
    same("attempts", row.attempts, 5)
}

fn a_replay_adds_to_the_history<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let before = bench.detail(&id)?.history;
    let claimed = bench.claim_id(&id)?;
    let mut result = Finish::new(&id, claimed.row.fence, ReplayOutcome::Recovered);
    result.attempts = 2;
    result.history = vec![AttemptRecord::new(1, start(), seconds(1), "timeout", Some(504), "slow")];
    done(bench.store.finish(result, actor()))?;
    let after = bench.detail(&id)?.history;
    same("earlier entries", after.get(..before.len()), Some(before.as_slice()))?;
    let added: Vec<_> = after.iter().skip(before.len()).collect();
    let shown = added.iter().map(|e| (e.attempt, e.outcome, e.fence, e.late, e.message.as_str())).collect();
    let fence = Some(claimed.row.fence);
    let wanted =
        vec![(1, AttemptOutcome::Failed, fence, false, "slow"), (2, AttemptOutcome::Succeeded, fence, false, "")];
    same::<Vec<_>>("new entries", shown, wanted)
}

fn an_unknown_letter_is_invalid<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    bench.park_job("a")?;
    let unknown = "00000000-0000-7000-8000-000000000000";
    same("get", done(bench.store.get(unknown.to_owned()))?, None)?;
    let result = Finish::new(unknown, 1, ReplayOutcome::Recovered);
    refused("finish", attempt(bench.store.finish(result, actor()))?, StoreErrorKind::Invalid)?;
    refused("extend", attempt(bench.store.extend(unknown.to_owned(), 1, LEASE))?, StoreErrorKind::Invalid)
}
