//! The judge: reads what the workers told and what the store keeps, and says which rules were broken.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::evidence::Evidence;
use super::harness::Harness;
use super::plan::Fault;
use super::report::Report;
use super::{audit, trial, witness};
use crate::dead_letter::executor::block_on;
use crate::dead_letter::{
    Actor, Aggregate, DeadLetterStore, EventQuery, EventRecord, Filter, GroupKey, LetterRow, LetterState, Order,
    PageRequest, StoreClock, Summary, to_millis,
};
use crate::error::StoreError;

/// Longer than any store may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn done<T>(what: &str, future: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
    match block_on(future, PATIENCE) {
        Some(result) => result.map_err(|error| format!("the store cannot {what}: {error}")),
        None => Err(format!("the store did not {what} within {PATIENCE:?}")),
    }
}

/// Judges a store that no worker uses any more. Its clock stands two leases behind the last kill, or later.
pub(super) fn judge<H: Harness>(harness: &H, place: &Path, store: &H::Store, clock: &StoreClock, report: &mut Report) {
    if let Err(broken) = hear(harness, place, store, clock, report) {
        report.broken.push(broken);
    }
}

fn hear<H: Harness>(
    harness: &H,
    place: &Path,
    store: &H::Store,
    clock: &StoreClock,
    report: &mut Report,
) -> Result<(), String> {
    let lines = witness::read_all(place).map_err(|error| format!("the witnesses cannot be heard: {error}"))?;
    let evidence = Evidence::of(lines);
    harness.settle(place, store)?;
    let stuck = nothing_is_stuck(store)?;
    report.broken.extend(stuck);
    let rows = all(store)?;
    let events = events(store)?;
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for row in &rows {
        let detail = done("show a letter", store.get(row.letter_id.clone()))?;
        let Some(detail) = detail else {
            report.broken.push(format!("D22: letter {} is listed and not there", row.letter_id));
            continue;
        };
        report.broken.extend(audit::of_letter(&detail, events.get(&row.letter_id).map_or(&[][..], Vec::as_slice)));
        for park_id in trial::letter(&detail, &evidence, to_millis(clock.now()), report) {
            let before = known.insert(park_id.clone(), row.letter_id.clone());
            if before.is_some_and(|before| before != row.letter_id) {
                report.broken.push(format!("D1: parking {park_id} is in two letters"));
            }
        }
    }
    everything_is_explained(harness, place, &evidence, &known, report);
    sums_agree(store, &rows, report)?;
    count(&evidence, &rows, report);
    report.broken.extend(evidence.contradictions);
    Ok(())
}

/// D15: two leases after the last kill, whoever comes next takes everything back.
fn nothing_is_stuck<S: DeadLetterStore>(store: &S) -> Result<Vec<String>, String> {
    done("take leases back", store.reap(Actor::new("judge", "chaos")))?;
    let mut filter = Filter::all();
    filter.states = vec![LetterState::Replaying];
    let page = done("list letters", store.list(filter, PageRequest::first(Order::LongestUnseenFirst, 100)))?;
    Ok(page.rows.iter().map(|row| format!("D15: letter {} is stuck, fence {}", row.letter_id, row.fence)).collect())
}

fn all<S: DeadLetterStore>(store: &S) -> Result<Vec<LetterRow>, String> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let request = PageRequest::first(Order::LongestUnseenFirst, 200).after(after);
        let page = done("list letters", store.list(Filter::all(), request))?;
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return Ok(rows);
        }
    }
}

/// Everything that happened to each letter, the oldest first.
fn events<S: DeadLetterStore>(store: &S) -> Result<BTreeMap<String, Vec<EventRecord>>, String> {
    let (mut events, mut after) = (BTreeMap::<String, Vec<EventRecord>>::new(), None);
    loop {
        let query = EventQuery::all().oldest_first().limit(2_000).after(after);
        let page = done("show events", store.events(query))?;
        for event in page.events {
            if let Some(letter_id) = event.letter_id.clone() {
                events.entry(letter_id).or_default().push(event);
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(events);
        }
    }
}

/// 11.1: every accepted id is explained.
fn everything_is_explained<H: Harness>(
    harness: &H,
    place: &Path,
    evidence: &Evidence,
    known: &BTreeMap<String, String>,
    report: &mut Report,
) {
    let spilled = evidence.spilled.iter().map(|id| (id, None));
    for (park_id, answered) in evidence.parked.iter().map(|(id, letter)| (id, Some(letter))).chain(spilled) {
        match (known.get(park_id), answered) {
            (Some(found), Some(answered)) if found != answered => {
                report.broken.push(format!("D1: parking {park_id} was answered with {answered} and is in {found}"));
            }
            (Some(_), _) => {}
            (None, _) if harness.is_elsewhere(place, park_id) => report.elsewhere += 1,
            (None, _) => report.broken.push(format!("11.1: parking {park_id} was accepted and is LOST")),
        }
    }
    report.broken.extend(evidence.lost.iter().map(|lost| format!("11.1: the store itself says LOST: {lost}")));
    let letters: BTreeSet<&String> = known.values().collect();
    for letter in evidence.letters.keys() {
        if !letters.contains(letter) && !harness.is_elsewhere(place, letter) {
            report.broken.push(format!("S1: letter {letter} was handed out and is nowhere"));
        }
    }
}

/// D10, D22: lists, counts, groups and the summary tell one story.
fn sums_agree<S: DeadLetterStore>(store: &S, rows: &[LetterRow], report: &mut Report) -> Result<(), String> {
    let mut summary = Summary::default();
    for state in LetterState::ALL.iter().copied() {
        let listed = rows.iter().filter(|row| row.state == state).count() as u64;
        let mut filter = Filter::all();
        filter.states = vec![state];
        let counted = done("count letters", store.count(filter.clone()))?;
        let groups = done("group letters", store.aggregate(Aggregate::new(filter, [GroupKey::ErrorClass])))?;
        let grouped: u64 = groups.iter().map(|group| group.letters).sum();
        if listed != counted || listed != grouped {
            report.broken.push(format!("D22: {listed} {state} letters listed, {counted} counted, {grouped} in groups"));
        }
    }
    for row in rows {
        summary.add(row.state, &row.error_class, 1);
    }
    let found = done("sum letters up", store.summary())?;
    // What else it says is about files.
    let of_letters = |summary: &Summary| (summary.parked.clone(), summary.replaying, summary.abandoned);
    if of_letters(&found) != of_letters(&summary) {
        report.broken.push(format!("D10: the summary says `{found}`, the letters say `{summary}`"));
    }
    Ok(())
}

fn count(evidence: &Evidence, rows: &[LetterRow], report: &mut Report) {
    report.accepted = (evidence.parked.len() + evidence.spilled.len()) as u64;
    report.spilled = evidence.spilled.len() as u64;
    for row in rows {
        *report.letters.entry(row.state.to_string()).or_default() += 1;
    }
    for replay in evidence.letters.values().flat_map(|told| told.replays.values()) {
        report.claims += replay.claims;
        report.results += replay.taken;
    }
    for (fault, n) in [(Fault::OutlivedLease, evidence.outlived), (Fault::ClockJumps, evidence.jumps)] {
        if n > 0 {
            *report.inflicted.entry(fault).or_default() += n;
        }
    }
    report.refused.clone_from(&evidence.refused);
}
