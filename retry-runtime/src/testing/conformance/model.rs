//! A random walk through all verbs, beside the store in memory: both must end every step in the same place.

use std::fmt::Debug;
use std::time::Duration;

use super::support::{
    Bench, Check, LEASE, attempt, checks, demand, done, failure, letter, parked, same, seconds, usual_claim,
};
use crate::dead_letter::{
    Actor, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Edit, EventPage, EventQuery, EventRecord, Filter,
    Finish, LetterDetail, LetterState, MemoryStore, Payload, Release, ReplayOutcome,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::stop::StopReason;

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks!["D1-D20" a_random_walk_goes_where_the_rules_lead]
}

/// Each with jobs of its own: an abandoned letter seldom goes anywhere any more.
const WALKS: u64 = 24;
const STEPS: u32 = 24;
const JOBS: u64 = 2;

/// The same numbers in every run: a failure can be repeated.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// Below `n`.
    pub(super) fn roll(&mut self, n: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % n
    }
}

/// One job as both stores know it.
#[derive(Default)]
struct Known {
    /// The letter's id in the store under check, and in the model.
    ids: Option<(String, String)>,
    /// What was sent, to be sent again.
    sent: Option<DeadLetter>,
    /// The highest fence that was handed out.
    fence: u64,
}

fn a_random_walk_goes_where_the_rules_lead<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let model = MemoryStore::with_clock(bench.time.clock());
    for walk in 0..WALKS {
        let mut dice = Dice(walk);
        let mut jobs: Vec<_> = (0..JOBS).map(|_| Known::default()).collect();
        for step in 0..STEPS {
            let job = dice.roll(JOBS);
            let Some(known) = usize::try_from(job).ok().and_then(|job| jobs.get_mut(job)) else { continue };
            let name = format!("walk {walk} job {job}");
            let verb = one_step(bench, &model, &mut dice, &name, known)
                .map_err(|what| format!("{name}, step {step}: {what}"))?;
            agree(bench, &model, known).map_err(|what| format!("{name}, step {step}, after {verb}: {what}"))?;
        }
    }
    Ok(())
}

fn one_step<S: DeadLetterStore>(
    bench: &Bench<S>,
    model: &MemoryStore,
    dice: &mut Dice,
    name: &str,
    known: &mut Known,
) -> Result<&'static str, String> {
    let actor = || Actor::new("walk", "");
    match dice.roll(16) {
        0..=2 => {
            let sent = match &known.sent {
                // The same parking again.
                Some(sent) if dice.roll(4) == 0 => sent.clone(),
                _ => random_letter(bench, dice, name),
            };
            let there = parked(bench.store.submit(sent.clone()))?;
            let here = parked(model.submit(sent.clone()))?;
            let ids = known.ids.get_or_insert_with(|| (there.clone(), here.clone()));
            same("the answers", (&there, &here), (&ids.0, &ids.1))?;
            known.sent = Some(sent);
            Ok("park")
        }
        3..=5 => {
            let Some((there, here)) = &known.ids else { return Ok("nothing") };
            let mut request = usual_claim();
            request.ignore_backoff = dice.roll(2) == 0;
            request.ignore_not_before = dice.roll(2) == 0;
            let of = |id: &String| ClaimRequest { filter: Filter::id(id.clone()), ..request.clone() };
            let theirs = done(bench.store.claim(of(there), actor()))?;
            let ours = done(model.claim(of(here), actor()))?;
            same("letters handed out", theirs.len(), ours.len())?;
            if let Some(claimed) = ours.first() {
                known.fence = claimed.row.fence;
            }
            Ok("claim")
        }
        6..=7 => {
            let Some((there, here)) = &known.ids else { return Ok("nothing") };
            // Sometimes of an earlier claim.
            let fence = known.fence.saturating_sub(dice.roll(4) / 3);
            let mut result = Finish::new(there.clone(), fence, random_outcome(bench, dice));
            result.attempts = u32::try_from(dice.roll(4)).unwrap_or(1);
            let ours = Finish { letter_id: here.clone(), ..result.clone() };
            let theirs = attempt(bench.store.finish(result, actor()))?;
            both("finish", theirs.map(|row| row.state), attempt(model.finish(ours, actor()))?.map(|row| row.state))?;
            Ok("finish")
        }
        8 => {
            let Some((there, here)) = &known.ids else { return Ok("nothing") };
            let release = if dice.roll(3) == 0 { Release::Forced } else { Release::Held { fence: known.fence } };
            let theirs = attempt(bench.store.release(there.clone(), release, actor()))?;
            let ours = attempt(model.release(here.clone(), release, actor()))?;
            both("release", theirs.map(|row| row.state), ours.map(|row| row.state))?;
            Ok("release")
        }
        9 => {
            let Some((there, here)) = &known.ids else { return Ok("nothing") };
            let theirs = attempt(bench.store.extend(there.clone(), known.fence, LEASE * 2))?;
            both("extend", theirs, attempt(model.extend(here.clone(), known.fence, LEASE * 2))?)?;
            Ok("extend")
        }
        10 => {
            let Some((there, here)) = &known.ids else { return Ok("nothing") };
            let more_replays = u32::try_from(dice.roll(3)).unwrap_or(0);
            let theirs = attempt(bench.store.restore(there.clone(), more_replays, actor()))?;
            let ours = attempt(model.restore(here.clone(), more_replays, actor()))?;
            both("restore", theirs.map(|row| row.state), ours.map(|row| row.state))?;
            Ok("restore")
        }
        11..=13 => by_hand(bench, model, dice, known),
        _ => {
            bench.time.advance(match dice.roll(4) {
                0 => Duration::from_millis(1),
                1..=2 => LEASE + seconds(1),
                _ => seconds(4_000),
            });
            // A claim takes leases back too.
            if dice.roll(3) == 0 {
                let theirs = done(bench.store.reap(actor()))?.len();
                same("leases taken back", theirs, done(model.reap(actor()))?.len())?;
            }
            Ok("time")
        }
    }
}

/// What an operator may do to a letter of any state.
fn by_hand<S: DeadLetterStore>(
    bench: &Bench<S>,
    model: &MemoryStore,
    dice: &mut Dice,
    known: &Known,
) -> Result<&'static str, String> {
    let Some((there, here)) = &known.ids else { return Ok("nothing") };
    // Sometimes without the reason that one of them wants.
    let actor = Actor::new("walk", if dice.roll(4) == 0 { "" } else { "seen" });
    let (what, theirs, ours) = match dice.roll(5) {
        0 => (
            "discard",
            attempt(bench.store.discard(there.clone(), actor.clone()))?.map(drop),
            attempt(model.discard(here.clone(), actor))?.map(drop),
        ),
        1 => (
            "resolve",
            attempt(bench.store.resolve(there.clone(), actor.clone()))?.map(drop),
            attempt(model.resolve(here.clone(), actor))?.map(drop),
        ),
        _ => {
            let newest = done(model.get(here.clone()))?.map_or(0, |detail| detail.row.payload_revision);
            let base = newest.saturating_sub(u32::try_from(dice.roll(4) / 3).unwrap_or(0));
            let payload = format!("{{\"n\":{}}}", dice.roll(4));
            let theirs = attempt(bench.store.edit(Edit::new(there, base, &payload), actor.clone()))?;
            let ours = attempt(model.edit(Edit::new(here, base, payload), actor))?;
            both("whether the edit changed something", theirs.map(|e| e.is_changed), ours.map(|e| e.is_changed))?;
            return Ok("edit");
        }
    };
    both(what, theirs, ours)?;
    Ok(what)
}

fn random_letter<S>(bench: &Bench<S>, dice: &mut Dice, name: &str) -> DeadLetter {
    let now = bench.time.now();
    // Sometimes imported late.
    let at = if dice.roll(4) == 0 { now - seconds(dice.roll(5_000)) } else { now };
    let mut sent = letter(name, at);
    sent.attempts = u32::try_from(dice.roll(4)).unwrap_or(0);
    sent.error_message = format!("message of route {}", if dice.roll(2) == 0 { "a" } else { "b" });
    sent.code = (dice.roll(2) == 0).then_some(429);
    sent.reason = if dice.roll(2) == 0 { StopReason::Exhausted } else { StopReason::Dropped };
    sent.not_before = (dice.roll(4) == 0).then(|| now + seconds(dice.roll(5_000)));
    sent.payload = match dice.roll(6) {
        0 => Payload::None,
        1 => Payload::Unserializable("why".to_owned()),
        n => Payload::Json(format!("{{\"n\":{}}}", n % 3)),
    };
    sent
}

fn random_outcome<S>(bench: &Bench<S>, dice: &mut Dice) -> ReplayOutcome {
    let mut failure = failure();
    failure.not_before = (dice.roll(3) == 0).then(|| bench.time.now() + seconds(dice.roll(5_000)));
    match dice.roll(6) {
        0..=1 => ReplayOutcome::Recovered,
        2 => ReplayOutcome::Gone(failure),
        _ => ReplayOutcome::Failed(failure),
    }
}

fn both<T: PartialEq + Debug>(
    what: &str,
    theirs: Result<T, StoreError>,
    ours: Result<T, StoreError>,
) -> Result<(), String> {
    let kind = |result: Result<T, StoreError>| result.map_err(|error| error.kind());
    same::<Result<T, StoreErrorKind>>(what, kind(theirs), kind(ours))
}

fn agree<S: DeadLetterStore>(bench: &Bench<S>, model: &MemoryStore, known: &Known) -> Result<(), String> {
    let Some((there, here)) = &known.ids else { return Ok(()) };
    let theirs = bench.detail(there)?;
    let mut ours = done(model.get(here.clone()))?.ok_or("the model lost a letter")?;
    let row = &theirs.row;
    same("closed_at is there", row.closed_at.is_some(), row.state.is_closed())?;
    same("lease is there", row.lease_until.is_some(), row.state == LetterState::Replaying)?;
    demand!(row.first_seen <= row.last_seen, "first seen after last seen");
    // What a store is free to choose.
    ours.row.seq = row.seq;
    ours.row.scope.clone_from(&row.scope);
    if ours.row.job_id == ours.row.letter_id {
        ours.row.job_id.clone_from(&row.job_id);
    }
    ours.row.letter_id.clone_from(&row.letter_id);
    let LetterDetail { row: wanted, payload, revisions, history, history_cut, history_cut_at } = ours;
    same("what was cut", (theirs.history_cut, theirs.history_cut_at), (history_cut, history_cut_at))?;
    same("row", &theirs.row, &wanted)?;
    same("payload", &theirs.payload, &payload)?;
    same("revisions", theirs.revisions, revisions)?;
    same("history", &theirs.history, &history)?;
    let payloads = done(bench.store.revisions(there.clone()))?;
    same("every payload", payloads, done(model.revisions(here.clone()))?)?;
    let told = |events: EventPage| {
        let one = |event: EventRecord| {
            // Who parked is the program, which a store names as it likes.
            let who = event.actor.filter(|_| event.what != "parked" && event.what != "reopened");
            (event.what, who, event.reason, event.before, event.after, event.detail, event.at)
        };
        events.events.into_iter().map(one).collect::<Vec<_>>()
    };
    let of = |id: &String| EventQuery::letter(id).limit(1_000);
    same("events", told(done(bench.store.events(of(there)))?), told(done(model.events(of(here)))?))
}
