//! Which letters a claim takes: the ones due longest.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use retry_runtime::dead_letter::{ClaimRequest, Filter, LetterRow, LetterState};
use rusqlite::types::Value;

use crate::filter::Condition;
use crate::letters;
use crate::rows::{Tx, stored};
use crate::walk::{Goal, HINT, Place, on_side, walk};

/// Where claims that had looked at all they may stopped, so that the next one for the same goes on there: a million letters
/// that do not match must not hide the one behind them. A hint only: it is lost with the store's handle.
#[derive(Default)]
pub(crate) struct Places(Mutex<HashMap<String, Place>>);

/// So many different claims are remembered.
const REMEMBERED: usize = 64;

impl Places {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, name: &str) -> Option<Place> {
        self.lock().get(name).copied()
    }

    fn set(&self, name: &str, place: Option<Place>) {
        let mut places = self.lock();
        match place {
            Some(place) => {
                if places.len() >= REMEMBERED && !places.contains_key(name) {
                    places.clear();
                }
                places.insert(name.to_owned(), place);
            }
            None => drop(places.remove(name)),
        }
    }
}

/// The letters to take, the ones due longest first. One walk per kind: each is answered by the claim index in order, where a
/// single question over all kinds would sort everything that is due.
pub(crate) fn due(tx: Tx<'_>, request: &ClaimRequest, places: &Places) -> rusqlite::Result<Vec<LetterRow>> {
    let name = name(request);
    let from = places.get(&name);
    let wanted = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let mut goal = Goal { descending: false, wanted, look_at: request.look_at };
    let mut found = walk(tx.connection, &due_queries(tx, request, Part::Behind(from)), goal)?;
    if found.stopped.is_none() && found.seqs.len() < wanted {
        // At the end of the list: what stands before the place has its turn again.
        let left = request.look_at.max(1).saturating_sub(found.looked_at);
        if let (Some(from), 1..) = (from, left) {
            goal.wanted = wanted.saturating_sub(found.seqs.len());
            goal.look_at = left;
            let before = walk(tx.connection, &due_queries(tx, request, Part::UpTo(from)), goal)?;
            found.stopped = before.stopped;
            found.seqs.extend(before.seqs);
        }
        places.set(&name, found.stopped);
    } else if found.stopped.is_some() {
        places.set(&name, found.stopped);
    }
    let mut rows = letters::rows_of(tx.connection, &found.seqs)?;
    rows.sort_by_key(|row| (row.not_before, row.seq));
    Ok(rows)
}

/// A claim by what it asks for.
fn name(request: &ClaimRequest) -> String {
    let flags = [request.ignore_backoff, request.ignore_not_before, request.replayable_only];
    format!("{:?} {:?} {flags:?}", request.kinds, request.filter)
}

/// Which part of the list is walked.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// Behind a place, or all of it.
    Behind(Option<Place>),
    /// Up to and with a place.
    UpTo(Place),
}

/// The walks through the due letters: one for each kind in the order of the claim index, or one through the letters named.
pub(crate) fn due_queries(tx: Tx<'_>, request: &ClaimRequest, part: Part) -> Vec<Condition> {
    let mut kinds: Vec<&String> = request.kinds.iter().collect();
    kinds.retain(|kind| request.filter.kinds.is_empty() || request.filter.kinds.contains(kind));
    kinds.sort();
    kinds.dedup();
    let mut asked = request.filter.clone();
    asked.kinds.clear();
    asked.states.clear();
    let (named, rest) = asked.split();
    let is_named = !(named.ids.is_empty() && named.job_ids.is_empty());
    let (walked, rest) = if is_named { (named, rest) } else { (Filter::all(), asked) };
    let mut test = Condition::test(&rest);
    if !request.ignore_backoff {
        test.and("replay_after <= ?", [Value::Integer(due_at(tx))]);
    }
    if request.replayable_only {
        test.and("payload_altered = 0 AND (payload_revision > 0 OR payload_error IS NULL)", []);
    }
    let of = |kinds: Vec<String>| {
        let mut filter = walked.clone();
        filter.kinds = kinds;
        filter
    };
    let filters: Vec<_> = match kinds.is_empty() {
        true => Vec::new(),
        false if is_named => vec![of(kinds.into_iter().cloned().collect())],
        false => kinds.into_iter().map(|kind| of(vec![kind.clone()])).collect(),
    };
    filters.iter().flat_map(|filter| part_queries(tx, filter, request, &test, part)).collect()
}

/// Now; 0, which stands for "at any time", is due also for a clock before the epoch.
fn due_at(tx: Tx<'_>) -> i64 {
    tx.millis().max(0)
}

fn part_queries(tx: Tx<'_>, filter: &Filter, request: &ClaimRequest, test: &Condition, part: Part) -> Vec<Condition> {
    let mut due = Condition::of(tx.scope, filter).in_state(filter, LetterState::Parked);
    if !request.ignore_not_before {
        due.and("not_before <= ?", [Value::Integer(due_at(tx))]);
    }
    let mut queries = match part {
        Part::Behind(None) => vec![due],
        Part::Behind(Some(place)) => on_side(&due, "not_before", ">", place).to_vec(),
        Part::UpTo(place) => on_side(&due, "not_before", "<=", place).to_vec(),
    };
    let is_named = !(filter.ids.is_empty() && filter.job_ids.is_empty());
    let hint = if is_named { String::new() } else { format!("{HINT}letter_claim") };
    for query in &mut queries {
        query.sql = format!(
            "SELECT not_before, seq, {} FROM letter{hint} WHERE {} ORDER BY not_before, seq LIMIT ?",
            test.as_test(),
            query.sql
        );
        query.values.splice(0..0, test.values.iter().cloned());
        query.values.push(Value::Integer(stored(request.look_at.saturating_add(1))));
    }
    queries
}
