//! The journal: jobs of processes that live, die, and come back.

use std::cell::RefCell;
use std::time::SystemTime;

use super::support::{Check, LEASE, actor, answered, demand, done, letter, parked, same, seconds, start, usual_claim};
use crate::attempt::AttemptRecord;
use crate::dead_letter::{
    DeadLetter, DeadLetterStore, Edit, EventQuery, Filter, Finish, JobEnd, JobJournal, JournalCounts, LetterRow,
    LetterState, ManualClock, OWNER_LEASE, PageRequest, Payload, ReplayOutcome, StoreClock, Struck,
};
use crate::stop::StopReason;
use crate::verdict::Disposition;

/// Two processes over the same letters.
pub(super) struct TwoProcesses<S> {
    first: RefCell<Option<S>>,
    second: S,
    time: ManualClock,
}

impl<S> TwoProcesses<S> {
    pub(super) fn new(make: impl FnOnce(StoreClock) -> (S, S)) -> Self {
        let time = ManualClock::new(start());
        let (first, second) = make(time.clock());
        Self { first: RefCell::new(Some(first)), second, time }
    }
}

macro_rules! checks {
    ($($rule:literal $name:ident),* $(,)?) => {
        vec![$(Check { rule: $rule, name: stringify!($name), run: $name::<S> }),*]
    };
}

pub(super) fn checks<S: JobJournal + DeadLetterStore>() -> Vec<Check<TwoProcesses<S>>> {
    checks![
        "D14" an_entered_job_is_no_letter,
        "11.4" a_success_removes_the_entry,
        "D14" a_letter_takes_the_entry_with_it,
        "11.4" the_job_of_a_dead_process_comes_back,
        "D15" a_claim_takes_the_jobs_of_the_dead,
        "D14" an_orderly_end_leaves_its_jobs_at_once,
        "D14" the_jobs_of_a_living_process_stay,
        "D14" a_late_success_recovers_the_letter,
        "D14" a_late_final_answer_discards_the_letter,
        "D14" a_late_success_leaves_a_replay_alone,
        "D14" a_late_success_leaves_other_failures_alone,
        "D14" a_late_failure_takes_the_place_of_the_crash,
        "D3" a_late_failure_beside_another_shows_the_newest,
        "D14" a_late_failure_undoes_nothing,
        "D14" a_late_failure_leaves_an_edit,
        "D20" a_crash_adds_an_attempt_to_the_letter_there_is,
        "D14" what_is_not_there_is_nothing,
        "D5" verbs_take_effect_in_their_order,
        "D9" an_entry_is_redacted_as_a_letter,
    ]
}

impl<S: JobJournal + DeadLetterStore> TwoProcesses<S> {
    fn first<T>(&self, ask: impl FnOnce(&S) -> Result<T, String>) -> Result<T, String> {
        self.first.borrow().as_ref().map_or_else(|| Err("the first process has ended".to_owned()), ask)
    }

    fn enter(&self, job_id: &str) -> Result<DeadLetter, String> {
        let job = letter(job_id, self.time.now());
        self.first(|first| answered(first.enter(job.clone()))?.map_err(|error| error.to_string()))?;
        Ok(job)
    }

    fn strike(&self, job: &DeadLetter, end: JobEnd) -> Result<Struck, String> {
        self.first(|first| answered(first.strike(job.park_id, end))?.map_err(|error| error.to_string()))
    }

    fn counts(&self) -> Result<JournalCounts, String> {
        done(self.second.journalled())
    }

    fn reap(&self) -> Result<Vec<LetterRow>, String> {
        done(self.second.reap(actor()))
    }

    /// The first process says nothing for longer than its lease.
    fn fall_silent(&self) {
        self.time.advance(OWNER_LEASE * 2);
    }

    /// The same, until the other one takes it for dead: a store that sees the clock jump says at once that it lives.
    fn until_dead<T>(&self, look: impl Fn(&Self) -> Result<Vec<T>, String>) -> Result<Vec<T>, String> {
        for _ in 0..100 {
            self.fall_silent();
            let found = look(self)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Err("the job of a process that said nothing never came back".to_owned())
    }

    fn rows(&self) -> Result<Vec<LetterRow>, String> {
        Ok(done(self.second.list(Filter::all(), PageRequest::default()))?.rows)
    }

    fn only(&self) -> Result<LetterRow, String> {
        let mut rows = self.rows()?;
        demand!(rows.len() == 1, "one letter was expected: {rows:?}");
        rows.pop().ok_or_else(String::new)
    }
}

fn running(running: u64) -> JournalCounts {
    JournalCounts { running, ..JournalCounts::default() }
}

fn an_entered_job_is_no_letter<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    bench.enter("a")?;
    same("letters", bench.rows()?.len(), 0)?;
    same("journal", bench.counts()?, running(1))
}

fn a_success_removes_the_entry<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    let (one, other) = (bench.enter("a")?, bench.enter("b")?);
    same("struck", bench.strike(&one, JobEnd::Succeeded)?, Struck::Removed)?;
    same("struck", bench.strike(&other, JobEnd::Gone)?, Struck::Removed)?;
    same("journal", bench.counts()?, running(0))?;
    bench.fall_silent();
    same("taken back", bench.reap()?.len(), 0)?;
    same("letters", bench.rows()?.len(), 0)
}

fn a_letter_takes_the_entry_with_it<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    let job = bench.enter("a")?;
    bench.first(|first| parked(first.submit(job)))?;
    same("journal", bench.counts()?, running(0))?;
    bench.fall_silent();
    same("taken back", bench.reap()?.len(), 0)?;
    same("reason", bench.only()?.reason, StopReason::Exhausted)
}

fn the_job_of_a_dead_process_comes_back<S: JobJournal + DeadLetterStore>(
    bench: &TwoProcesses<S>,
) -> Result<(), String> {
    let job = bench.enter("a")?;
    let reaped = bench.until_dead(TwoProcesses::reap)?;
    same("taken back", reaped.iter().map(|row| row.job_id.clone()).collect(), vec!["a".to_owned()])?;
    let row = bench.only()?;
    same("state and reason", (row.state, row.reason), (LetterState::Parked, StopReason::Crashed))?;
    same("error class", row.error_class.as_str(), "crashed")?;
    same("attempts", (row.attempts, row.parkings, row.replays, row.crashes), (1, 1, 0, 0))?;
    same("labels", (row.kind.as_str(), row.model.as_deref()), ("fetch", Some("m1")))?;
    same("seen", (row.first_seen, row.last_seen), (start(), bench.time.now()))?;
    let detail = done(bench.second.get(row.letter_id))?.ok_or("the letter is not there")?;
    same("payload", detail.payload, job.payload)?;
    same("history", detail.history.len(), 1)?;
    same("journal", bench.counts()?, running(0))?;
    same("taken back again", bench.reap()?.len(), 0)
}

fn a_claim_takes_the_jobs_of_the_dead<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    bench.enter("a")?;
    let claimed = bench.until_dead(|bench| done(bench.second.claim(usual_claim(), actor())))?;
    same("claimed", claimed.iter().map(|claimed| claimed.row.job_id.as_str()).collect(), vec!["a"])
}

fn an_orderly_end_leaves_its_jobs_at_once<S: JobJournal + DeadLetterStore>(
    bench: &TwoProcesses<S>,
) -> Result<(), String> {
    bench.enter("a")?;
    drop(bench.first.take());
    let summary = done(bench.second.summary())?;
    same("summary", (summary.orphaned, summary.is_clean()), (1, false))?;
    same("journal", bench.counts()?, JournalCounts { orphaned: 1, ..running(0) })?;
    same("taken back", bench.reap()?.len(), 1)?;
    same("reason", bench.only()?.reason, StopReason::Crashed)
}

fn the_jobs_of_a_living_process_stay<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    let job = bench.enter("a")?;
    for other in ["b", "c", "d"] {
        bench.time.advance(OWNER_LEASE / 2);
        bench.enter(other)?;
        same("taken back", bench.reap()?.len(), 0)?;
    }
    same("journal", bench.counts()?, running(4))?;
    same("struck", bench.strike(&job, JobEnd::Succeeded)?, Struck::Removed)
}

fn a_late_success_recovers_the_letter<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    let job = bench.enter("a")?;
    bench.until_dead(TwoProcesses::reap)?;
    bench.time.advance(seconds(1));
    same("struck", bench.strike(&job, JobEnd::Succeeded)?, Struck::Late)?;
    let row = bench.only()?;
    same("closed", (row.state, row.closed_at), (LetterState::Recovered, Some(bench.time.now())))?;
    same("struck again", bench.strike(&job, JobEnd::Succeeded)?, Struck::Nothing)
}

fn a_late_final_answer_discards_the_letter<S: JobJournal + DeadLetterStore>(
    bench: &TwoProcesses<S>,
) -> Result<(), String> {
    let job = bench.enter("a")?;
    bench.until_dead(TwoProcesses::reap)?;
    same("struck", bench.strike(&job, JobEnd::Gone)?, Struck::Late)?;
    same("state", bench.only()?.state, LetterState::Discarded)
}

fn a_late_success_leaves_a_replay_alone<S: JobJournal + DeadLetterStore>(
    bench: &TwoProcesses<S>,
) -> Result<(), String> {
    let job = bench.enter("a")?;
    let claim = |bench: &TwoProcesses<S>| {
        let mut request = usual_claim();
        request.lease = LEASE * 9;
        done(bench.second.claim(request, actor()))
    };
    same("claimed", bench.until_dead(claim)?.len(), 1)?;
    same("struck", bench.strike(&job, JobEnd::Succeeded)?, Struck::Nothing)?;
    same("state", bench.only()?.state, LetterState::Replaying)
}

fn a_late_success_leaves_other_failures_alone<S: JobJournal + DeadLetterStore>(
    bench: &TwoProcesses<S>,
) -> Result<(), String> {
    let job = bench.enter("a")?;
    bench.until_dead(TwoProcesses::reap)?;
    bench.time.advance(seconds(1));
    parked(bench.second.submit(letter("a", bench.time.now())))?;
    same("struck", bench.strike(&job, JobEnd::Succeeded)?, Struck::Nothing)?;
    same("state", bench.only()?.state, LetterState::Parked)
}

/// What the living process says itself: a permanent failure with a hint, of two attempts.
fn late_failure(job: &DeadLetter, failed_at: SystemTime) -> DeadLetter {
    let mut late = job.clone();
    (late.reason, late.disposition) = (StopReason::Permanent, Disposition::Permanent);
    (late.class, late.code) = (Some("forbidden".to_owned()), Some(403));
    "403 the account is closed".clone_into(&mut late.error_message);
    late.failed_at = failed_at;
    late.not_before = Some(failed_at + seconds(86_400));
    late.attempts = 2;
    late.history = (1..=2).map(|n| AttemptRecord::new(n, failed_at, LEASE, "forbidden", Some(403), "403")).collect();
    late
}

fn a_late_failure_takes_the_place_of_the_crash<S: JobJournal + DeadLetterStore>(
    bench: &TwoProcesses<S>,
) -> Result<(), String> {
    let job = bench.enter("a")?;
    // out of the spill it comes home late: it failed before it was taken for dead
    let late = late_failure(&job, bench.time.now() + seconds(1));
    bench.until_dead(TwoProcesses::reap)?;
    for _ in 0..2 {
        bench.first(|first| parked(first.submit(late.clone())))?;
        let row = bench.only()?;
        same("counted", (row.parkings, row.attempts, row.crashes), (1, 2, 0))?;
        same("reason and class", (row.reason, row.error_class.as_str()), (StopReason::Permanent, "permanent:403"))?;
        same("message", row.error_message.as_str(), "403 the account is closed")?;
        same("seen", (row.state, row.last_seen), (LetterState::Parked, late.failed_at))?;
        same("hint", row.not_before, late.not_before)?;
        let detail = done(bench.second.get(row.letter_id))?.ok_or("the letter is not there")?;
        same("payload", (detail.row.payload_revision, detail.payload), (1, job.payload.clone()))?;
        same("history, the crash included", detail.history.len(), 3)?;
    }
    let events = done(bench.second.events(EventQuery::default()))?.events;
    let what = |name: &str| events.iter().filter(|event| event.what == name).count();
    same("events", (what("parked"), what("late_failure")), (1, 1))?;
    same("struck", bench.strike(&job, JobEnd::Succeeded)?, Struck::Nothing)
}

fn a_late_failure_beside_another_shows_the_newest<S: JobJournal + DeadLetterStore>(
    bench: &TwoProcesses<S>,
) -> Result<(), String> {
    let job = bench.enter("a")?;
    let late = late_failure(&job, bench.time.now() + seconds(1));
    bench.until_dead(TwoProcesses::reap)?;
    bench.time.advance(seconds(1));
    parked(bench.second.submit(letter("a", bench.time.now())))?;
    bench.first(|first| parked(first.submit(late.clone())))?;
    let row = bench.only()?;
    same("counted", (row.parkings, row.attempts), (2, 4))?;
    same("newest", (row.reason, row.last_seen), (StopReason::Exhausted, bench.time.now()))?;
    same("hint", row.not_before, late.not_before)
}

fn a_late_failure_undoes_nothing<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    let job = bench.enter("a")?;
    let mut request = usual_claim();
    request.lease = LEASE * 9;
    let claimed = bench.until_dead(|bench| done(bench.second.claim(request.clone(), actor())))?;
    let late = late_failure(&job, bench.time.now());
    // while a replay has it: the replay's word is the last one
    bench.first(|first| parked(first.submit(late.clone())))?;
    let row = bench.only()?;
    same("state", (row.state, row.failed_again), (LetterState::Replaying, false))?;
    same("class", row.error_class.as_str(), "permanent:403")?;
    for claimed in claimed {
        let result = Finish::new(claimed.row.letter_id, claimed.row.fence, ReplayOutcome::Recovered);
        done(bench.second.finish(result, actor()))?;
    }
    same("state", bench.only()?.state, LetterState::Recovered)?;
    // and where it was closed by hand
    let job = bench.enter("b")?;
    for row in bench.until_dead(TwoProcesses::reap)? {
        done(bench.second.discard(row.letter_id, actor()))?;
    }
    bench.first(|first| parked(first.submit(late_failure(&job, bench.time.now()))))?;
    let rows = bench.rows()?;
    let row = rows.iter().find(|row| row.job_id == "b").ok_or("no letter of b")?;
    same("state and hint", (row.state, row.not_before), (LetterState::Discarded, None))?;
    same("attempts", (row.parkings, row.attempts), (1, 2))
}

fn a_late_failure_leaves_an_edit<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    let job = bench.enter("a")?;
    bench.until_dead(TwoProcesses::reap)?;
    let row = bench.only()?;
    done(bench.second.edit(Edit::new(&row.letter_id, row.payload_revision, "{\"mended\":1}"), actor()))?;
    bench.first(|first| parked(first.submit(late_failure(&job, bench.time.now()))))?;
    let detail = done(bench.second.get(row.letter_id))?.ok_or("the letter is not there")?;
    same("payload", detail.payload, Payload::Json("{\"mended\":1}".to_owned()))?;
    same("class", detail.row.error_class.as_str(), "permanent:403")
}

fn a_crash_adds_an_attempt_to_the_letter_there_is<S: JobJournal + DeadLetterStore>(
    bench: &TwoProcesses<S>,
) -> Result<(), String> {
    parked(bench.second.submit(letter("a", bench.time.now())))?;
    bench.enter("a")?;
    bench.until_dead(TwoProcesses::reap)?;
    let row = bench.only()?;
    same("counted", (row.parkings, row.attempts, row.reason), (2, 3, StopReason::Crashed))
}

fn what_is_not_there_is_nothing<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    let unknown = letter("a", bench.time.now());
    same("struck", bench.strike(&unknown, JobEnd::Succeeded)?, Struck::Nothing)?;
    // a letter that did not come out of the journal is not closed by a success
    bench.first(|first| parked(first.submit(unknown.clone())))?;
    same("struck", bench.strike(&unknown, JobEnd::Succeeded)?, Struck::Nothing)?;
    same("state", bench.only()?.state, LetterState::Parked)
}

fn verbs_take_effect_in_their_order<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    let (one, other) = (letter("a", bench.time.now()), letter("b", bench.time.now()));
    let ticket = bench.first(|first| {
        // nobody waits in between: a drop guard does not
        drop(first.enter(one.clone()));
        drop(first.strike(one.park_id, JobEnd::Succeeded));
        drop(first.enter(other.clone()));
        Ok(first.submit(other.clone()))
    })?;
    parked(ticket)?;
    same("journal", bench.counts()?, running(0))?;
    same("letter", bench.only()?.job_id.as_str(), "b")
}

fn an_entry_is_redacted_as_a_letter<S: JobJournal + DeadLetterStore>(bench: &TwoProcesses<S>) -> Result<(), String> {
    // by default no rule alters a payload, and the largest one comes back as it was
    let mut job = letter("a", bench.time.now());
    job.payload = Payload::Json(format!("\"{}\"", "token=abc ".repeat(300_000)));
    bench.first(|first| answered(first.enter(job.clone()))?.map_err(|error| error.to_string()))?;
    bench.until_dead(TwoProcesses::reap)?;
    let row = bench.only()?;
    same("altered", row.payload_altered, false)?;
    let detail = done(bench.second.get(row.letter_id))?.ok_or("the letter is not there")?;
    demand!(detail.payload == job.payload, "the payload differs");
    Ok(())
}
