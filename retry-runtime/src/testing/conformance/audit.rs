//! The table of states and transitions, walked through whole, and the audit it leaves behind.

use super::support::{
    Bench, Check, LEASE, actor, answered, attempt, checks, demand, done, failure, letter, parked, same, seconds,
};
use crate::dead_letter::{
    Actor, DeadLetterStore, Edit, EventPage, EventQuery, EventRecord, Finish, LetterRow, LetterState, Release,
    ReplayOutcome,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::ledger::{AttemptLedger, LedgerKey};

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks![
        "S1" every_transition_is_written_down_once_and_every_other_refused,
        "S1" a_change_of_state_is_told_by_one_event,
        "S1" the_audit_is_paged_in_both_orders,
        "S1" an_unknown_letter_and_operation_have_no_events,
    ]
}

pub(super) fn ledger_checks<S: DeadLetterStore + AttemptLedger>() -> Vec<Check<Bench<S>>> {
    checks!["S1" a_reset_of_a_key_is_written_down]
}

/// What may be done to a letter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verb {
    Park,
    ParkOlder,
    ParkAgain,
    Claim,
    Recovered,
    Gone,
    Failed,
    Late,
    Extend,
    Release,
    ReleaseStale,
    ReleaseForced,
    Restore,
    Discard,
    Resolve,
    Edit,
    Reap,
}

const VERBS: [Verb; 17] = [
    Verb::Park,
    Verb::ParkOlder,
    Verb::ParkAgain,
    Verb::Claim,
    Verb::Recovered,
    Verb::Gone,
    Verb::Failed,
    Verb::Late,
    Verb::Extend,
    Verb::Release,
    Verb::ReleaseStale,
    Verb::ReleaseForced,
    Verb::Restore,
    Verb::Discard,
    Verb::Resolve,
    Verb::Edit,
    Verb::Reap,
];

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    /// This event, and this state.
    Event(&'static str, LetterState),
    /// Accepted, without any change of state, and not worth an event.
    Nothing,
    /// Refused, with nothing changed.
    Refused(StoreErrorKind),
    /// Refused and recorded, with nothing else changed.
    Recorded(StoreErrorKind),
}

/// The table.
fn wanted(from: LetterState, verb: Verb) -> Wanted {
    use LetterState::{Abandoned, Discarded, Parked, Recovered, Replaying};
    use StoreErrorKind::{Conflict, StaleLease};
    match (verb, from) {
        (Verb::Park, Recovered | Discarded) => Wanted::Event("reopened", Parked),
        (Verb::Park | Verb::ParkOlder, from) => Wanted::Event("parked", from),
        (Verb::Claim, Parked) => Wanted::Event("claimed", Replaying),
        (Verb::Recovered, Replaying) => Wanted::Event("replayed", Recovered),
        (Verb::Gone, Replaying) => Wanted::Event("replayed", Discarded),
        (Verb::Failed, Replaying) => Wanted::Event("replayed", Parked),
        (Verb::Recovered | Verb::Gone | Verb::Failed | Verb::Late, _) => Wanted::Recorded(StaleLease),
        (Verb::Release | Verb::ReleaseForced, Replaying) => Wanted::Event("released", Parked),
        (Verb::Reap, Replaying) => Wanted::Event("lease_expired", Parked),
        (Verb::ParkAgain | Verb::Claim | Verb::Reap, _) | (Verb::Extend, Replaying) => Wanted::Nothing,
        (Verb::Extend | Verb::Release | Verb::ReleaseStale, _) => Wanted::Refused(StaleLease),
        (Verb::Restore, Recovered | Discarded | Abandoned) => Wanted::Event("restored", Parked),
        (Verb::Discard, Parked | Abandoned) => Wanted::Event("discarded", Discarded),
        (Verb::Resolve, Parked | Abandoned) => Wanted::Event("resolved", Recovered),
        (Verb::Edit, Parked | Recovered | Discarded | Abandoned) => Wanted::Event("edited", from),
        (Verb::ReleaseForced | Verb::Restore | Verb::Discard | Verb::Resolve | Verb::Edit, _) => {
            Wanted::Refused(Conflict)
        }
    }
}

impl<S: DeadLetterStore> Bench<S> {
    /// A letter in a state, and the last parking that brought it there.
    fn letter_in(&self, state: LetterState, job: &str) -> Result<(String, crate::dead_letter::DeadLetter), String> {
        let sent = letter(job, self.time.now());
        let id = self.park(sent.clone())?;
        match state {
            LetterState::Parked => {}
            LetterState::Replaying => drop(self.claim_id(&id)?),
            LetterState::Recovered => drop(self.replay(&id, ReplayOutcome::Recovered)?),
            LetterState::Discarded => drop(self.replay(&id, ReplayOutcome::Gone(failure()))?),
            LetterState::Abandoned => drop(self.wear_out(&id)?),
        }
        self.time.advance(seconds(1));
        Ok((id, sent))
    }

    fn audit(&self, query: EventQuery) -> Result<EventPage, String> {
        done(self.store.events(query))
    }

    fn events_of(&self, id: &str) -> Result<Vec<EventRecord>, String> {
        Ok(self.audit(EventQuery::letter(id).oldest_first().limit(1_000))?.events)
    }

    /// Does it. The outer error is the check's own.
    fn verb(
        &self,
        verb: Verb,
        before: &LetterRow,
        sent: &crate::dead_letter::DeadLetter,
    ) -> Result<Result<(), StoreError>, String> {
        let id = before.letter_id.clone();
        let finish = |fence, outcome| {
            attempt(self.store.finish(Finish::new(&id, fence, outcome), actor())).map(|done| done.map(drop))
        };
        let release = |release| attempt(self.store.release(id.clone(), release, actor())).map(|done| done.map(drop));
        let park = |sent| parked(self.store.submit(sent)).map(|_| Ok(()));
        match verb {
            Verb::Park => park(letter(&before.job_id, self.time.now())),
            Verb::ParkOlder => park(letter(&before.job_id, before.first_seen - seconds(9))),
            Verb::ParkAgain => park(sent.clone()),
            Verb::Claim => {
                let mut request = super::support::usual_claim();
                request.filter = crate::dead_letter::Filter::id(&id);
                (request.ignore_backoff, request.ignore_not_before) = (true, true);
                self.claim(request).map(|_| Ok(()))
            }
            Verb::Recovered => finish(before.fence, ReplayOutcome::Recovered),
            Verb::Gone => finish(before.fence, ReplayOutcome::Gone(failure())),
            Verb::Failed => finish(before.fence, ReplayOutcome::Failed(failure())),
            Verb::Late => finish(before.fence + 7, ReplayOutcome::Recovered),
            Verb::Extend => attempt(self.store.extend(id.clone(), before.fence, LEASE)).map(|done| done.map(drop)),
            Verb::Release => release(Release::Held { fence: before.fence }),
            Verb::ReleaseStale => release(Release::Held { fence: before.fence + 1 }),
            Verb::ReleaseForced => release(Release::Forced),
            Verb::Restore => attempt(self.store.restore(id, 1, actor())).map(|done| done.map(drop)),
            Verb::Discard => attempt(self.store.discard(id, actor())).map(|done| done.map(drop)),
            Verb::Resolve => attempt(self.store.resolve(id, actor())).map(|done| done.map(drop)),
            Verb::Edit => {
                let edit = Edit::new(id, before.payload_revision, "\"edited\"");
                attempt(self.store.edit(edit, actor())).map(|done| done.map(drop))
            }
            Verb::Reap => {
                self.time.advance(LEASE + seconds(1));
                done(self.store.reap(actor())).map(|_| Ok(()))
            }
        }
    }
}

fn every_transition_is_written_down_once_and_every_other_refused<S: DeadLetterStore>(
    bench: &Bench<S>,
) -> Result<(), String> {
    for from in LetterState::ALL {
        for verb in VERBS {
            one_cell(bench, *from, verb).map_err(|what| format!("{verb:?} of a {from} letter: {what}"))?;
        }
    }
    Ok(())
}

fn one_cell<S: DeadLetterStore>(bench: &Bench<S>, from: LetterState, verb: Verb) -> Result<(), String> {
    let (id, sent) = bench.letter_in(from, &format!("{from} {verb:?}"))?;
    let before = bench.detail(&id)?;
    same("the letter to begin with", before.row.state, from)?;
    let told = bench.events_of(&id)?;
    let result = bench.verb(verb, &before.row, &sent)?.map_err(|error| error.kind());
    let after = bench.detail(&id)?;
    let mut events = bench.events_of(&id)?;
    demand!(events.starts_with(&told), "events were changed or removed");
    let new = events.split_off(told.len());
    let wanted = wanted(from, verb);
    let state = match wanted {
        Wanted::Event(_, state) => state,
        Wanted::Nothing | Wanted::Refused(_) | Wanted::Recorded(_) => from,
    };
    same("state", after.row.state, state)?;
    let closed = (after.row.closed_at.is_some(), after.row.closed_by.is_some(), after.row.closed_reason.is_some());
    same("when, by whom and how it was closed", closed, (state.is_closed(), state.is_closed(), state.is_closed()))?;
    let (what, result_wanted) = match wanted {
        Wanted::Event(what, _) => (Some(what), Ok(())),
        Wanted::Nothing => (None, Ok(())),
        Wanted::Refused(kind) => (None, Err(kind)),
        Wanted::Recorded(kind) => (Some("late_result"), Err(kind)),
    };
    same("the answer", result, result_wanted)?;
    match wanted {
        // A lease may be longer now.
        Wanted::Nothing if verb != Verb::Extend => same("the letter", &after, &before)?,
        Wanted::Refused(_) => same("the letter", &after, &before)?,
        Wanted::Recorded(_) => same("the letter's row", &after.row, &before.row)?,
        _ => {}
    }
    let told: Vec<_> = new.iter().map(|event| event.what.as_str()).collect();
    same("events", told, what.into_iter().collect())?;
    let Some(event) = new.first() else { return Ok(()) };
    same("its letter", event.letter_id.as_ref(), Some(&id))?;
    same("its states", (event.before, event.after), (Some(from), Some(state)))?;
    same("its time", event.at, bench.time.now())?;
    same("its operation", event.operation.as_deref(), None)?;
    match verb {
        // By the program itself.
        Verb::Park | Verb::ParkOlder => {
            demand!(event.actor.as_ref().is_some_and(|name| !name.is_empty()), "nobody parked it");
            same("its reason", event.reason.as_deref(), Some("exhausted"))
        }
        _ => {
            same("who and why", (event.actor.as_deref(), event.reason.as_deref()), (Some("conformance"), Some("check")))
        }
    }
}

fn a_change_of_state_is_told_by_one_event<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.replay(&id, ReplayOutcome::Failed(failure()))?;
    let fence = bench.claim_id(&id)?.row.fence;
    // Recorded, and told by the result: it is still owed.
    bench.time.advance(seconds(1));
    bench.park_job("a")?;
    bench.finish(&id, fence, ReplayOutcome::Recovered)?;
    while bench.row(&id)?.state == LetterState::Parked {
        bench.replay(&id, ReplayOutcome::Failed(failure()))?;
    }
    done(bench.store.restore(id.clone(), 3, Actor::new("ann", "the server is back")))?;
    bench.replay(&id, ReplayOutcome::Recovered)?;
    let events = bench.events_of(&id)?;
    // Each begins where the one before ended.
    let mut state = None;
    for event in &events {
        same(&format!("`{}` begins", event.what), event.before, state)?;
        state = event.after;
    }
    same("the end", state, Some(LetterState::Recovered))?;
    let first = events.first().map(|event| (event.what.as_str(), event.before, event.after));
    same("the first event", first, Some(("parked", None, Some(LetterState::Parked))))?;
    let results: Vec<_> =
        events.iter().filter(|event| event.what == "replayed").map(|event| event.detail.as_str()).collect();
    demand!(results.starts_with(&["permanent"]) && results.ends_with(&["recovered"]), "results told: {results:?}");
    let restored = events.iter().find(|event| event.what == "restored").ok_or("nothing tells of the restoration")?;
    let who = (restored.actor.as_deref(), restored.reason.as_deref(), restored.detail.as_str());
    same("who restored it", who, (Some("ann"), Some("the server is back"), "3 more replays"))
}

fn the_audit_is_paged_in_both_orders<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let ids = ["a", "b", "c"].into_iter().map(|job| bench.park_job(job)).collect::<Result<Vec<_>, _>>()?;
    for id in &ids {
        bench.time.advance(seconds(1));
        bench.replay(id, ReplayOutcome::Failed(failure()))?;
        bench.time.advance(seconds(1));
        done(bench.store.discard(id.clone(), actor()))?;
    }
    let everything = bench.audit(EventQuery::all().oldest_first().limit(1_000))?;
    same("the end of a whole list", everything.next, None)?;
    let one = ids.get(1).cloned().unwrap_or_default();
    let of_one: Vec<_> =
        everything.events.iter().filter(|event| event.letter_id.as_ref() == Some(&one)).cloned().collect();
    same(
        "what happened to one",
        of_one.iter().map(|event| event.what.as_str()).collect(),
        vec!["parked", "claimed", "replayed", "discarded"],
    )?;
    for (query, wanted) in [(EventQuery::all(), &everything.events), (EventQuery::letter(&one), &of_one)] {
        for oldest_first in [true, false] {
            let mut query = query.clone().limit(2);
            query.oldest_first = oldest_first;
            let mut found = Vec::new();
            let mut after = None;
            loop {
                let page = bench.audit(query.clone().after(after))?;
                demand!(page.events.len() <= 2, "{} events on a page of 2", page.events.len());
                found.extend(page.events);
                after = page.next;
                if after.is_none() {
                    break;
                }
                demand!(found.len() <= wanted.len(), "the pages do not end");
            }
            if !oldest_first {
                found.reverse();
            }
            same("the pages together", &found, wanted)?;
        }
    }
    Ok(())
}

fn an_unknown_letter_and_operation_have_no_events<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    bench.park_job("a")?;
    same("of a letter", bench.audit(EventQuery::letter("nowhere"))?.events, vec![])?;
    same("of an operation", bench.audit(EventQuery::operation("nothing"))?.events, vec![])
}

fn a_reset_of_a_key_is_written_down<S: DeadLetterStore + AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    let key = LedgerKey::new("fetch", "a");
    done(bench.store.reset(key.clone(), actor()))?;
    same("events without a key", bench.audit(EventQuery::all())?.events, vec![])?;
    answered(bench.store.begin(key.clone(), 3))?.map_err(|error| error.to_string())?;
    done(bench.store.reset(key.clone(), Actor::new("ann", "the file is back")))?;
    let events = bench.audit(EventQuery::all())?.events;
    let [event] = events.as_slice() else { return Err(format!("events: {events:?}")) };
    demand!(event.detail.starts_with(&key.to_string()), "it does not say which key: {}", event.detail);
    let said = (event.what.as_str(), event.actor.as_deref(), event.reason.as_deref());
    same("the event", said, ("ledger_reset", Some("ann"), Some("the file is back")))?;
    same("its letter and states", (&event.letter_id, event.before, event.after), (&None, None, None))
}
