//! Chaos finds what is broken: a small store made of the rules, with one fault each.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    Actor, Aggregate, BoxFuture, Capabilities, ClaimRequest, Claimed, DeadLetter, DeadLetterSink, DeadLetterStore,
    Edit, Edited, EventPage, EventQuery, Filter, Finish, Group, HistoryEntry, KnownPayload, LetterDetail, LetterRow,
    LetterState, Order, Page, PageRequest, Parking, Payload, Release, Revision, StoreClock, Summary, Ticket,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::id::Id;
use retry_runtime::reply::Reply;
use retry_runtime::testing::store_chaos::{self, Harness, Plan, Report};

type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// A letter that is opened again has the fence of its last replay.
    FenceKeptAtReopen,
    FenceKeptAtClaim,
    /// Takes leases back that still run.
    ReaperWithoutGuard,
    /// Takes back what was expired when it looked, and is finished by now.
    ReaperThatLooksFirst,
    NothingIsReaped,
    CrashNotCounted,
    /// Answers when an operation is done; a process that dies takes the transaction along.
    AnswersBeforeTheCommit,
    /// Answers from a savepoint; the transaction of the group is rolled back later.
    AnswersFromASavepoint,
    SummaryWithoutAbandoned,
    LateResultApplied,
    LateResultForgotten,
    /// A spilled line that is imported again is a new parking.
    ImportByLine,
    SuccessLeftParked,
    AttemptsOfReplaysForgotten,
    CountForgetsReplaying,
}

#[derive(Clone, Default)]
struct State {
    letters: BTreeMap<String, (LetterRow, Payload, Vec<HistoryEntry>)>,
    jobs: BTreeMap<(String, String), String>,
    parkings: BTreeMap<Id, String>,
    seen_expired: Vec<String>,
}

struct Store {
    fault: Fault,
    clock: StoreClock,
    state: Mutex<State>,
    /// The state of the last commit, and how many operations came since.
    committed: Mutex<(State, u32)>,
}

impl Store {
    fn state(&self) -> MutexGuard<'_, State> {
        if matches!(self.fault, Fault::AnswersBeforeTheCommit | Fault::AnswersFromASavepoint) {
            self.commit_in_groups();
        }
        self.state.lock().unwrap()
    }

    /// Commits every tenth operation; or loses the group, where that is the fault.
    fn commit_in_groups(&self) {
        let (mut state, mut committed) = (self.state.lock().unwrap(), self.committed.lock().unwrap());
        committed.1 += 1;
        if committed.1 % 10 == 0 {
            if self.fault == Fault::AnswersFromASavepoint && committed.1 % 1_000 == 0 {
                *state = committed.0.clone();
            }
            committed.0 = state.clone();
        }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn park(&self, letter: &DeadLetter) -> String {
        let mut state = self.state();
        if let (Some(id), false) = (state.parkings.get(&letter.park_id), self.is(Fault::ImportByLine)) {
            return id.clone();
        }
        let (mut row, _) = LetterRow::first(letter);
        row.seq = state.parkings.len() as u64 + 1;
        let job = (row.kind.clone(), row.job_id.clone());
        let id = state.jobs.entry(job).or_insert_with(|| row.letter_id.clone()).clone();
        let history = letter.history.iter().map(|record| HistoryEntry::parked(letter.park_id, record));
        if let Some((row, payload, entries)) = state.letters.get_mut(&id) {
            let fence = row.fence;
            let known = KnownPayload { highest: row.payload_revision, ..KnownPayload::default() };
            row.merge(letter, known, self.clock.now());
            *payload = letter.payload.clone();
            entries.extend(history);
            if self.is(Fault::FenceKeptAtReopen) {
                row.fence = fence;
            }
        } else {
            state.letters.insert(id.clone(), (row, letter.payload.clone(), history.collect()));
        }
        state.parkings.insert(letter.park_id, id.clone());
        id
    }

    fn reap(&self, state: &mut State) -> Vec<LetterRow> {
        let now = self.clock.now();
        let expired = |row: &LetterRow| match self.fault {
            Fault::NothingIsReaped => false,
            Fault::ReaperWithoutGuard => row.state == LetterState::Replaying,
            _ => row.is_expired(now),
        };
        let found = state.letters.values().filter(|(row, ..)| expired(row)).map(|(row, ..)| row.letter_id.clone());
        let mut ids: Vec<_> = found.collect();
        if self.is(Fault::ReaperThatLooksFirst) {
            std::mem::swap(&mut ids, &mut state.seen_expired);
        }
        let mut reaped = Vec::new();
        for id in ids {
            let Some((row, _, history)) = state.letters.get_mut(&id) else { continue };
            if row.state != LetterState::Replaying && row.state != LetterState::Recovered {
                continue;
            }
            let entry = row.reap(&Actor::new("reaper", ""), now);
            row.closed_at = row.closed_at.filter(|_| row.state.is_closed());
            if self.is(Fault::CrashNotCounted) {
                row.crashes -= 1;
                row.attempts -= 1;
            } else {
                history.push(entry);
            }
            reaped.push(row.clone());
        }
        reaped
    }

    fn claim(&self, request: &ClaimRequest) -> Vec<Claimed> {
        let mut state = self.state();
        self.reap(&mut state);
        let now = self.clock.now();
        let due = state.letters.values_mut().filter(|(row, ..)| request.takes(row, now));
        let mut claimed = Vec::new();
        for (row, payload, _) in due.take(request.limit as usize) {
            row.claim(request, now);
            if self.is(Fault::FenceKeptAtClaim) {
                row.fence = 1;
            }
            claimed.push(Claimed::new(row.clone(), payload.clone()));
        }
        claimed
    }

    fn finish(&self, mut result: Finish) -> Result<LetterRow> {
        let (mut state, now) = (self.state(), self.clock.now());
        let Some((row, _, history)) = state.letters.get_mut(&result.letter_id) else { return Err(unknown()) };
        let entries = result.entries(now);
        if self.is(Fault::LateResultApplied) && row.state == LetterState::Replaying {
            result.fence = row.fence;
        }
        if self.is(Fault::AttemptsOfReplaysForgotten) {
            result.attempts = 0;
        }
        if let Err(stale) = row.finish(&result, &Actor::new("worker", ""), now) {
            if !self.is(Fault::LateResultForgotten) {
                history.extend(entries.into_iter().map(HistoryEntry::late));
            }
            return Err(stale);
        }
        history.extend(entries);
        let closed = row.clone();
        if self.is(Fault::SuccessLeftParked) && row.state == LetterState::Recovered {
            row.state = LetterState::Parked;
            row.closed_at = None;
        }
        Ok(closed)
    }

    fn change<T>(&self, id: &str, change: impl FnOnce(&mut LetterRow) -> Result<T>) -> Result<T> {
        self.state().letters.get_mut(id).map_or_else(|| Err(unknown()), |(row, ..)| change(row))
    }

    fn rows(&self, filter: &Filter) -> Vec<LetterRow> {
        let state = self.state.lock().unwrap();
        state.letters.values().map(|(row, ..)| row.clone()).filter(|row| filter.matches(row)).collect()
    }
}

fn unknown() -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, "no such letter")
}

/// The work of one verb, done when the future is first polled.
fn later<'a, T: Send + 'a>(work: impl FnOnce() -> Result<T> + Send + 'a) -> BoxFuture<'a, Result<T>> {
    Box::pin(async move { work() })
}

impl DeadLetterSink for Store {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        Reply::ready(Parking::Parked { letter_id: self.park(&letter) })
    }
}

impl DeadLetterStore for Store {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn get(&self, letter_id: String) -> BoxFuture<'_, Result<Option<LetterDetail>>> {
        later(move || {
            let state = self.state.lock().unwrap();
            let found = state.letters.get(&letter_id).cloned();
            Ok(found.map(|(row, payload, history)| {
                let revisions = row.payload_revision;
                LetterDetail::new(row, payload, revisions, history)
            }))
        })
    }

    fn list(&self, filter: Filter, page: PageRequest) -> BoxFuture<'_, Result<Page>> {
        later(move || {
            let mut rows = self.rows(&filter);
            rows.retain(|row| page.after.is_none_or(|cursor| cursor.precedes(row, page.order)));
            rows.sort_by_key(|row| (row.last_seen, row.seq));
            if page.order == Order::NewestFirst {
                rows.reverse();
            }
            Ok(Page::of(rows, page.limit))
        })
    }

    fn count(&self, filter: Filter) -> BoxFuture<'_, Result<u64>> {
        later(move || {
            let forgets = self.is(Fault::CountForgetsReplaying) && filter.states == [LetterState::Discarded];
            Ok(if forgets { 0 } else { self.rows(&filter).len() as u64 })
        })
    }

    fn summary(&self) -> BoxFuture<'_, Result<Summary>> {
        later(move || {
            let mut summary = Summary::default();
            for row in self.rows(&Filter::all()) {
                if row.state != LetterState::Abandoned || !self.is(Fault::SummaryWithoutAbandoned) {
                    summary.add(row.state, &row.error_class, 1);
                }
            }
            Ok(summary)
        })
    }

    fn aggregate(&self, question: Aggregate) -> BoxFuture<'_, Result<Vec<Group>>> {
        later(move || {
            let mut groups: Vec<Group> = Vec::new();
            for row in self.rows(&question.filter) {
                let keys: Vec<_> = question.by.iter().map(|key| key.of(&row)).collect();
                match groups.iter_mut().find(|group| group.keys == keys) {
                    Some(group) => group.letters += 1,
                    None => groups.push(Group::new(keys, None, 1, row.attempts, (row.first_seen, row.last_seen))),
                }
            }
            Ok(groups)
        })
    }

    fn claim(&self, request: ClaimRequest, _actor: Actor) -> BoxFuture<'_, Result<Vec<Claimed>>> {
        later(move || Ok(self.claim(&request)))
    }

    fn finish(&self, result: Finish, _actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        later(move || self.finish(result))
    }

    fn extend(&self, letter_id: String, fence: u64, lease: Duration) -> BoxFuture<'_, Result<SystemTime>> {
        later(move || self.change(&letter_id, |row| row.extend(fence, lease, self.clock.now())))
    }

    fn release(&self, letter_id: String, release: Release, _actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        let now = self.clock.now();
        later(move || self.change(&letter_id, |row| row.release(release, now).map(|()| row.clone())))
    }

    fn restore(&self, letter_id: String, more_replays: u32, _actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        later(move || self.change(&letter_id, |row| row.restore(more_replays).map(|()| row.clone())))
    }

    fn discard(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        let now = self.clock.now();
        later(move || self.change(&letter_id, |row| row.discard(&actor, now).map(|()| row.clone())))
    }

    fn resolve(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        let now = self.clock.now();
        later(move || self.change(&letter_id, |row| row.resolve(&actor, now).map(|()| row.clone())))
    }

    fn edit(&self, edit: Edit, _actor: Actor) -> BoxFuture<'_, Result<Edited>> {
        later(move || Err(StoreError::new(StoreErrorKind::Invalid, format!("nobody edits {}", edit.letter_id))))
    }

    fn revisions(&self, _letter_id: String) -> BoxFuture<'_, Result<Vec<Revision>>> {
        later(|| Ok(Vec::new()))
    }

    fn events(&self, query: EventQuery) -> BoxFuture<'_, Result<EventPage>> {
        later(move || Ok(EventPage::of(Vec::new(), query.limit)))
    }

    fn reap(&self, _actor: Actor) -> BoxFuture<'_, Result<Vec<LetterRow>>> {
        later(move || Ok(self.reap(&mut self.state())))
    }
}

struct With(Fault);

impl Harness for With {
    type Store = Store;

    fn open(&self, _place: &Path, clock: StoreClock) -> Result<Store> {
        Ok(Store { fault: self.0, clock, state: Mutex::default(), committed: Mutex::default() })
    }

    fn killed(&self, _place: &Path, store: Option<&Store>) {
        if let (Fault::AnswersBeforeTheCommit, Some(store)) = (self.0, store) {
            store.state.lock().unwrap().clone_from(&store.committed.lock().unwrap().0);
        }
    }
}

fn run(fault: Fault) -> Report {
    let report = store_chaos::run(&With(fault), &Plan::new(format!("{fault:?}")).seed(7).kills(60).jobs(40));
    if let Some(kept) = &report.kept {
        std::fs::remove_dir_all(kept).unwrap();
    }
    report
}

// Without a fault nothing is found, and everything the faults are about happened.
#[test]
fn the_store_without_a_fault_passes() {
    let report = run(Fault::None);
    report.assert_passed();
    assert_eq!(report.killed(), 60);
    for (n, what) in [(report.late, "late"), (report.crashes, "crashes"), (report.reopened, "reopened")] {
        assert!(n > 10, "{n} {what}");
    }
    for state in ["parked", "recovered", "discarded", "abandoned"] {
        assert!(report.letters[state] > 0, "no letter is {state}");
    }
}

// The same seed is the same run.
#[test]
fn a_run_of_tasks_repeats_exactly() {
    assert_eq!(run(Fault::None), run(Fault::None));
    assert_eq!(run(Fault::LateResultApplied).broken, run(Fault::LateResultApplied).broken);
}

#[test]
fn each_fault_is_found() {
    let found_by: &[(Fault, &str)] = &[
        (Fault::FenceKeptAtReopen, "D2: recovered by fence"),
        (Fault::FenceKeptAtClaim, "S1: fence 1 was handed out"),
        (Fault::ReaperWithoutGuard, "was taken back while its lease ran"),
        (Fault::ReaperThatLooksFirst, "was taken, and it crashed"),
        (Fault::NothingIsReaped, "is stuck"),
        (Fault::CrashNotCounted, "crashes not counted"),
        (Fault::AnswersBeforeTheCommit, "was accepted and is LOST"),
        (Fault::AnswersFromASavepoint, "was accepted and is LOST"),
        (Fault::SummaryWithoutAbandoned, "D10: the summary says"),
        (Fault::LateResultApplied, "ended twice: crashed and"),
        (Fault::LateResultForgotten, "late results of fence"),
        (Fault::ImportByLine, "counts twice"),
        (Fault::SuccessLeftParked, "without a new failure"),
        (Fault::AttemptsOfReplaysForgotten, "D20:"),
        (Fault::CountForgetsReplaying, "D22:"),
    ];
    for (fault, wanted) in found_by {
        let report = run(*fault);
        assert!(report.broken.iter().any(|broken| broken.contains(wanted)), "{fault:?} is not found:\n{report}");
    }
}

// What is broken is said with the seed that shows it.
#[test]
fn a_report_tells_the_seed_and_what_was_skipped() {
    let report = run(Fault::SummaryWithoutAbandoned);
    let text = report.to_string();
    for part in ["CHAOS_SEED=7, 60 kills", "SKIPPED full disk", "BROKEN D10", "1 rules broken"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(std::panic::catch_unwind(|| report.assert_passed()).is_err());
}
