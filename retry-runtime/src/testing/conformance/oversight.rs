//! Those who look after a store are looked after, too.

use super::support::{Bench, Check, actor, checks, demand, done, same, seconds};
use crate::dead_letter::{
    Actor, DeadLetterStore, EventQuery, EventRecord, Incident, MAX_ACTOR_REASON, Oversight, whole_millis,
};

pub(super) fn checks<S: DeadLetterStore + Oversight>() -> Vec<Check<Bench<S>>> {
    checks![
        "S1" an_incident_is_written_down_once_and_changes_no_letter,
        "S1" an_incident_of_no_letter_is_one_of_the_store,
        "D22" what_is_said_of_an_incident_is_bounded,
    ]
}

fn record<S: Oversight>(
    bench: &Bench<S>,
    incident: Incident,
    letter: Option<&str>,
    detail: &str,
) -> Result<(), String> {
    done(bench.store.record(incident, letter.map(str::to_owned), detail.to_owned(), actor()))
}

/// The newest events, the oldest of them first.
fn newest<S: DeadLetterStore>(bench: &Bench<S>, most: u32) -> Result<Vec<EventRecord>, String> {
    let mut events = done(bench.store.events(EventQuery::all().limit(most)))?.events;
    events.reverse();
    Ok(events)
}

fn an_incident_is_written_down_once_and_changes_no_letter<S: DeadLetterStore + Oversight>(
    bench: &Bench<S>,
) -> Result<(), String> {
    let (id, other) = (bench.park_job("a")?, bench.park_job("b")?);
    let rows = (bench.row(&id)?, bench.row(&other)?);
    let mut written = newest(bench, 100)?.len();
    for incident in Incident::ALL {
        bench.time.advance(seconds(7));
        record(bench, *incident, Some(&id), incident.as_str())?;
        written += 1;
        let events = newest(bench, 100)?;
        same("how many events", events.len(), written)?;
        demand!(events.windows(2).all(|pair| matches!(pair, [a, b] if a.id < b.id)), "not in order: {events:?}");
        let Some(event) = events.last() else { return Err("no event".to_owned()) };
        same("what", event.what.as_str(), incident.as_str())?;
        same("when", event.at, whole_millis(bench.time.now()))?;
        same("of what", event.letter_id.as_deref(), Some(id.as_str()))?;
        same("by whom", event.actor.as_deref(), Some(actor().name.as_str()))?;
        same("why", event.reason.as_deref(), Some(actor().reason.as_str()))?;
        same("more of it", event.detail.as_str(), incident.as_str())?;
        same("no change of state", (event.before, event.after), (None, None))?;
    }
    let words = |id: &str| -> Result<Vec<String>, String> {
        let events = done(bench.store.events(EventQuery::letter(id).oldest_first()))?.events;
        Ok(events.into_iter().skip(1).map(|event| event.what).collect())
    };
    let all: Vec<String> = Incident::ALL.iter().map(|incident| incident.as_str().to_owned()).collect();
    same("the letter's own events", words(&id)?, all)?;
    same("those of another", words(&other)?, Vec::new())?;
    same("the letters", (bench.row(&id)?, bench.row(&other)?), rows)
}

fn an_incident_of_no_letter_is_one_of_the_store<S: DeadLetterStore + Oversight>(
    bench: &Bench<S>,
) -> Result<(), String> {
    bench.park_job("a")?;
    for letter in [None, Some("none")] {
        record(bench, Incident::Refused, letter, "discard")?;
        let events = newest(bench, 1)?;
        let found = events.first().map(|event| (event.letter_id.as_deref(), event.detail.as_str()));
        same("of no letter", found, Some((None, "discard")))?;
    }
    same("nothing else happened", newest(bench, 100)?.len(), 3)
}

fn what_is_said_of_an_incident_is_bounded<S: DeadLetterStore + Oversight>(bench: &Bench<S>) -> Result<(), String> {
    let long = "x".repeat(4 * MAX_ACTOR_REASON);
    let actor = Actor::new(long.clone(), long.clone());
    done(bench.store.record(Incident::LoginRefused, None, long, actor))?;
    let events = newest(bench, 1)?;
    let Some(event) = events.first() else { return Err("no event".to_owned()) };
    for text in [Some(&event.detail), event.reason.as_ref(), event.actor.as_ref()].into_iter().flatten() {
        demand!(text.len() <= MAX_ACTOR_REASON && text.contains("cut"), "{} bytes are kept", text.len());
    }
    Ok(())
}
