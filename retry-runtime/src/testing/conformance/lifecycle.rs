//! Leases: extended, released, run out.

use super::support::{
    Bench, Check, LEASE, actor, attempt, checks, demand, done, failure, refused, same, seconds, start, usual_claim,
};
use crate::dead_letter::{
    AttemptOutcome, DeadLetterStore, Filter, Finish, LetterState, MAX_CRASHES, MAX_REPLAYS, Release, ReplayOutcome,
};
use crate::error::StoreErrorKind;

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks![
        "D15" a_lease_that_ran_out_is_taken_back,
        "D15" a_claim_takes_expired_leases_back_first,
        "D13" a_crash_counts_apart_from_replays,
        "D13" three_crashes_abandon,
        "D13" a_renewed_allowance_covers_crashes,
        "D15" an_extended_lease_is_not_taken_back,
        "S1" only_the_holder_extends,
        "D13" an_orderly_release_counts_nothing,
        "D13" what_could_not_be_started_waits_and_counts_nothing,
        "S1" a_forced_release_raises_the_fence,
        "S1" only_a_replaying_letter_is_released,
        "S1" a_stale_release_changes_nothing,
        "D15" a_lease_kept_alive_does_not_run_out,
        "D13" a_lease_given_back_is_free_again,
        "S1" a_closed_letter_is_restored,
        "S1" a_restored_letter_has_what_was_granted,
        "S1" a_letter_abandoned_by_crashes_is_restored,
        "S1" only_a_closed_letter_is_restored,
    ]
}

fn reap<S: DeadLetterStore>(bench: &Bench<S>) -> Result<usize, String> {
    Ok(done(bench.store.reap(actor()))?.len())
}

fn a_lease_that_ran_out_is_taken_back<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.claim_id(&id)?;
    same("during the lease", reap(bench)?, 0)?;
    bench.time.advance(LEASE + seconds(1));
    same("after it", reap(bench)?, 1)?;
    let row = bench.row(&id)?;
    same("state", row.state, LetterState::Parked)?;
    same("owner", row.owner, None)?;
    same("lease", row.lease_until, None)?;
    same("error_class", row.error_class.as_str(), "exhausted:429")?;
    same("again", reap(bench)?, 0)
}

fn a_claim_takes_expired_leases_back_first<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.claim_id(&id)?;
    same("during the lease", bench.claim(usual_claim())?.len(), 0)?;
    bench.time.advance(LEASE + seconds(1));
    let claimed = bench.claim(usual_claim())?;
    same("after it", claimed.len(), 1)?;
    same("crashes", bench.row(&id)?.crashes, 1)
}

fn a_crash_counts_apart_from_replays<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.claim_id(&id)?;
    bench.time.advance(LEASE + seconds(1));
    reap(bench)?;
    let detail = bench.detail(&id)?;
    same("crashes", detail.row.crashes, 1)?;
    same("replays", detail.row.replays, 0)?;
    same("attempts", detail.row.attempts, 3)?;
    let last = detail.history.last().map(|entry| (entry.outcome, entry.fence));
    same("the last entry", last, Some((AttemptOutcome::Crashed, Some(1))))
}

fn three_crashes_abandon<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    for crash in 1..=MAX_CRASHES {
        bench.claim_id(&id)?;
        bench.time.advance(LEASE + seconds(1));
        reap(bench)?;
        let wanted = if crash < MAX_CRASHES { LetterState::Parked } else { LetterState::Abandoned };
        same(&format!("state after crash {crash}"), bench.row(&id)?.state, wanted)?;
    }
    let row = bench.row(&id)?;
    demand!(row.closed_at.is_some(), "an abandoned letter has no closed_at");
    same("owed", done(bench.store.count(Filter::owed()))?, 1)
}

fn a_renewed_allowance_covers_crashes<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    for _ in 1..MAX_CRASHES {
        bench.claim_id(&id)?;
        bench.time.advance(LEASE + seconds(1));
        reap(bench)?;
    }
    bench.replay(&id, ReplayOutcome::Recovered)?;
    bench.park_job("a")?;
    bench.claim_id(&id)?;
    bench.time.advance(LEASE + seconds(1));
    reap(bench)?;
    let row = bench.row(&id)?;
    same("crashes", row.crashes, MAX_CRASHES)?;
    same("state", row.state, LetterState::Parked)
}

fn an_extended_lease_is_not_taken_back<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let fence = bench.claim_id(&id)?.row.fence;
    for n in 1..=5_u32 {
        bench.time.advance(LEASE / 2);
        let end = done(bench.store.extend(id.clone(), fence, LEASE))?;
        same("the new end", end, start() + LEASE / 2 * n + LEASE)?;
        same("taken back", reap(bench)?, 0)?;
    }
    same("state", bench.finish(&id, fence, ReplayOutcome::Recovered)?.state, LetterState::Recovered)
}

fn only_the_holder_extends<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let fence = bench.claim_id(&id)?.row.fence;
    let before = bench.row(&id)?;
    for wrong in [fence - 1, fence + 1] {
        refused("extend", attempt(bench.store.extend(id.clone(), wrong, LEASE * 9))?, StoreErrorKind::StaleLease)?;
    }
    same("the letter", bench.row(&id)?, before)
}

fn an_orderly_release_counts_nothing<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let fence = bench.claim_id(&id)?.row.fence;
    let row = bench.release(&id, Release::Held { fence })?.map_err(|error| error.to_string())?;
    same("state", row.state, LetterState::Parked)?;
    same("replays", row.replays, 0)?;
    same("crashes", row.crashes, 0)?;
    same("attempts", row.attempts, 2)?;
    same("last_seen", row.last_seen, start())?;
    same("claimed again", bench.claim(usual_claim())?.len(), 1)
}

fn what_could_not_be_started_waits_and_counts_nothing<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let fence = bench.claim_id(&id)?.row.fence;
    let stale = Release::Later { fence: fence + 1, wait: seconds(90) };
    refused("a stale one", bench.release(&id, stale)?, StoreErrorKind::StaleLease)?;
    let release = Release::Later { fence, wait: seconds(90) };
    let row = bench.release(&id, release)?.map_err(|error| error.to_string())?;
    same("state", row.state, LetterState::Parked)?;
    same("counts", (row.replays, row.crashes, row.attempts), (0, 0, 2))?;
    same("replay_after", row.replay_after, Some(start() + seconds(90)))?;
    same("hint", row.not_before, None)?;
    same("the letter", bench.row(&id)?, row)?;
    bench.time.advance(seconds(89));
    same("claimed during the wait", bench.claim(usual_claim())?.len(), 0)?;
    // A shorter wait shortens nothing.
    let again = bench.claim_id(&id)?.row.fence;
    let release = Release::Later { fence: again, wait: seconds(0) };
    let row = bench.release(&id, release)?.map_err(|error| error.to_string())?;
    same("replay_after", row.replay_after, Some(start() + seconds(90)))?;
    bench.time.advance(seconds(1));
    same("claimed behind it", bench.claim(usual_claim())?.len(), 1)
}

fn a_forced_release_raises_the_fence<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let fence = bench.claim_id(&id)?.row.fence;
    let row = bench.release(&id, Release::Forced)?.map_err(|error| error.to_string())?;
    same("state", row.state, LetterState::Parked)?;
    demand!(row.fence > fence, "the fence was not raised");
    let late = Finish::new(&id, fence, ReplayOutcome::Recovered);
    refused("the former holder's result", attempt(bench.store.finish(late, actor()))?, StoreErrorKind::StaleLease)?;
    same("state", bench.row(&id)?.state, LetterState::Parked)
}

fn only_a_replaying_letter_is_released<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    refused("a parked letter", bench.release(&id, Release::Forced)?, StoreErrorKind::Conflict)?;
    bench.replay(&id, ReplayOutcome::Recovered)?;
    refused("a recovered letter", bench.release(&id, Release::Forced)?, StoreErrorKind::Conflict)?;
    same("state", bench.row(&id)?.state, LetterState::Recovered)
}

fn a_stale_release_changes_nothing<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let slow = bench.claim_id(&id)?.row.fence;
    bench.time.advance(LEASE + seconds(1));
    bench.claim_id(&id)?;
    let before = bench.row(&id)?;
    refused("release", bench.release(&id, Release::Held { fence: slow })?, StoreErrorKind::StaleLease)?;
    same("the letter", bench.row(&id)?, before)
}

fn a_lease_kept_alive_does_not_run_out<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    if !bench.store.capabilities().heartbeats {
        return Ok(());
    }
    let id = bench.park_job("a")?;
    let mut request = usual_claim();
    request.keep_alive = true;
    let claimed = bench.claim(request)?.pop().ok_or("nothing was handed out")?;
    bench.time.advance(LEASE * 10);
    same("taken back", reap(bench)?, 0)?;
    bench.time.advance(LEASE * 10);
    same("handed out to another", bench.claim(usual_claim())?.len(), 0)?;
    let row = bench.finish(&id, claimed.row.fence, ReplayOutcome::Failed(failure()))?;
    same("crashes", row.crashes, 0)?;
    // The heartbeat ended with the result: the next lease is its own.
    bench.claim_id(&id)?;
    bench.time.advance(LEASE + seconds(1));
    same("a later lease taken back", reap(bench)?, 1)
}

fn a_lease_given_back_is_free_again<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let mut request = usual_claim();
    request.keep_alive = bench.store.capabilities().heartbeats;
    let claimed = bench.claim(request)?.pop().ok_or("nothing was handed out")?;
    bench.store.give_back(&id, claimed.row.fence);
    // At the latest when the lease has run out.
    bench.time.advance(LEASE + seconds(1));
    let what = "handed out again after `give_back`, which a store overrides to end the lease and its heartbeat";
    same(what, bench.claim(usual_claim())?.len(), 1)
}

fn a_closed_letter_is_restored<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let recovered = bench.park_job("a")?;
    bench.replay(&recovered, ReplayOutcome::Recovered)?;
    let discarded = bench.park_job("b")?;
    bench.replay(&discarded, ReplayOutcome::Gone(failure()))?;
    let abandoned = bench.park_job("c")?;
    bench.wear_out(&abandoned)?;
    for id in [recovered, discarded, abandoned] {
        let before = bench.detail(&id)?;
        let row = done(bench.store.restore(id.clone(), 2, actor()))?;
        let after = bench.detail(&id)?;
        same("the letter as returned", &row, &after.row)?;
        same("state", row.state, LetterState::Parked)?;
        same("closed_at", row.closed_at, None)?;
        same("fence", row.fence, before.row.fence + 1)?;
        same("max_replays", row.max_replays, before.row.max_replays + 2)?;
        same("replays", row.replays, before.row.replays)?;
        same("attempts", row.attempts, before.row.attempts)?;
        same("the history", after.history, before.history)?;
        same("the payload", after.payload, before.payload)?;
        let late = Finish::new(&id, before.row.fence, ReplayOutcome::Recovered);
        refused("an earlier replay's result", attempt(bench.store.finish(late, actor()))?, StoreErrorKind::StaleLease)?;
    }
    same("handed out", bench.claim(usual_claim())?.len(), 3)
}

fn a_restored_letter_has_what_was_granted<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.wear_out(&id)?;
    done(bench.store.restore(id.clone(), 2, actor()))?;
    for wanted in [LetterState::Parked, LetterState::Abandoned] {
        same("state after a failed replay", bench.replay(&id, ReplayOutcome::Failed(failure()))?.state, wanted)?;
    }
    same("replays", bench.row(&id)?.replays, MAX_REPLAYS + 2)
}

fn a_letter_abandoned_by_crashes_is_restored<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    for _ in 0..MAX_CRASHES {
        bench.claim_id(&id)?;
        bench.time.advance(LEASE + seconds(1));
        reap(bench)?;
    }
    same("state", bench.row(&id)?.state, LetterState::Abandoned)?;
    done(bench.store.restore(id.clone(), 0, actor()))?;
    // One more crash does not abandon it at once.
    bench.claim_id(&id)?;
    bench.time.advance(LEASE + seconds(1));
    reap(bench)?;
    let row = bench.row(&id)?;
    same("crashes", row.crashes, MAX_CRASHES + 1)?;
    same("state after another crash", row.state, LetterState::Parked)
}

fn only_a_closed_letter_is_restored<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let restore = |more| attempt(bench.store.restore(id.clone(), more, actor()));
    refused("a parked letter", restore(1)?, StoreErrorKind::Conflict)?;
    let fence = bench.claim_id(&id)?.row.fence;
    refused("a replaying letter", restore(1)?, StoreErrorKind::Conflict)?;
    done(bench.store.release(id.clone(), Release::Held { fence }, actor()))?;
    let before = bench.wear_out(&id)?;
    refused("without a grant", restore(0)?, StoreErrorKind::Invalid)?;
    same("the letter", bench.row(&id)?, before)?;
    let unknown = "00000000-0000-7000-8000-000000000000".to_owned();
    refused("an unknown letter", attempt(bench.store.restore(unknown, 1, actor()))?, StoreErrorKind::Invalid)
}
