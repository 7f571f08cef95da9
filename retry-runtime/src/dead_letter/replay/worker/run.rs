//! One run of a [`ReplayWorker`].

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::super::OperationRunner;
use super::super::alarm::{Timer, pause};
use super::super::crew::Crew;
use super::super::heart::Heart;
use super::super::job::is_without_payload;
use super::super::work::{Ended, Lease, Ways, work};
use super::pauses::{Pauses, about};
use super::{ReplayWorker, WorkerReport};
use crate::clock;
use crate::dead_letter::{
    Aggregate, Claimed, DeadLetterStore, Filter, Finish, GroupKey, LetterState, Operation, Pace, Release,
    ReplayOutcome, Verb,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::observe::Notice;
use crate::verdict::Disposition;

/// How long a letter is left alone whose handler could not be started.
const NOT_STARTED: Duration = Duration::from_secs(60);
/// And one whose payload could not be read: somebody has to see to it.
const UNREADABLE: Duration = Duration::from_secs(3_600);
/// Far more operations than are ever open at once.
const OPEN: u32 = 1_000;

/// What the turns of letters work with.
struct Bench<'a> {
    with: &'a ReplayWorker,
    store: Arc<dyn DeadLetterStore>,
    /// Where the store does not keep leases itself.
    heart: Option<Heart>,
    runner: OperationRunner,
    timer: Timer,
}

pub(super) struct Run<'a> {
    bench: Bench<'a>,
    books: Books<'a>,
}

/// What a run remembers.
struct Books<'a> {
    with: &'a ReplayWorker,
    report: WorkerReport,
    pace: Pace,
    letters: Pauses,
    operations: Pauses,
    handlers: Pauses,
    at_letters: u32,
    at_operation: bool,
    has_said_what_is_left_out: bool,
}

/// How one piece of work ended.
enum Done {
    Letter(Turn),
    Operation(Result<(), StoreError>),
}

/// How one letter's turn ended.
enum Turn {
    Result { state: LetterState, is_gone: bool },
    Late,
    NotStarted { stops: Option<String> },
    Failed(StoreError),
}

impl<'a> Run<'a> {
    pub(super) fn new(with: &'a ReplayWorker, timer: Timer) -> Result<Self, StoreError> {
        if with.handlers.kinds().is_empty() {
            let message = format!("{} has no handlers: name the kinds it can replay by `on`", with.name);
            return Err(StoreError::new(StoreErrorKind::Invalid, message));
        }
        let store: Arc<dyn DeadLetterStore> = Arc::new(Arc::clone(&with.store));
        let heart = (!store.capabilities().heartbeats).then(|| Heart::start(with.lease)).transpose()?;
        let bench = Bench { with, store, heart, runner: with.runner(), timer };
        let now = clock::monotonic();
        let first = now.checked_add(about(with.start_after)).unwrap_or(now);
        let books = Books {
            with,
            report: WorkerReport::default(),
            pace: Pace::new(with.rate),
            letters: Pauses::new("take letters", first),
            operations: Pauses::new("run operations", first),
            handlers: Pauses::new("start handlers", now),
            at_letters: 0,
            at_operation: false,
            has_said_what_is_left_out: false,
        };
        Ok(Self { bench, books })
    }

    pub(super) async fn until_stopped(self) -> Result<WorkerReport, StoreError> {
        let Self { bench, mut books } = self;
        let ended = books.work(&bench).await;
        if let Err(error) = &ended {
            // Nobody may be looking at a task that ended.
            let message = format!("{} has ended: {error}", bench.with.name);
            Notice::error("replay_worker_ended", "", message).say();
        }
        ended.map(|()| books.report)
    }
}

impl Books<'_> {
    async fn work<'b>(&mut self, bench: &'b Bench<'b>) -> Result<(), StoreError> {
        let mut crew = Crew::new();
        let mut end = None;
        loop {
            for done in crew.take_ended() {
                self.write_down(done)?;
            }
            let now = clock::monotonic();
            if end.is_none() && self.with.stop.is_set() {
                end = Some(now.checked_add(self.with.stop_within).unwrap_or(now));
            }
            if let Some(end) = end {
                if crew.len() == 0 || end <= now {
                    // What is still at work gives its leases back as it is dropped.
                    return Ok(());
                }
                bench.wait(&mut crew, Some(end), true).await;
                continue;
            }
            if self.wants_letters(now) {
                self.take_letters(bench, &mut crew, now).await?;
            } else if self.wants_an_operation(now) {
                self.take_an_operation(bench, &mut crew, now).await?;
            } else {
                bench.wait(&mut crew, self.next(now), false).await;
            }
        }
    }

    /// How many more letters may be begun.
    fn free(&self) -> u32 {
        self.with.concurrency.saturating_sub(self.at_letters)
    }

    fn wants_letters(&self, now: Instant) -> bool {
        self.with.takes_letters
            && self.free() > 0
            && self.letters.is_due(now)
            && self.handlers.is_due(now)
            && self.pace.wait(now).is_zero()
    }

    fn wants_an_operation(&self, now: Instant) -> bool {
        self.with.runs_operations && !self.at_operation && self.operations.is_due(now) && self.handlers.is_due(now)
    }

    /// When something can be taken next, if nothing ends before.
    fn next(&self, now: Instant) -> Option<Instant> {
        let handlers = self.handlers.next();
        let pace = now.checked_add(self.pace.wait(now)).unwrap_or(now);
        let letters = self.letters.next().max(handlers).max(pace);
        let letters = (self.with.takes_letters && self.free() > 0).then_some(letters);
        let operation = self.operations.next().max(handlers);
        let operation = (self.with.runs_operations && !self.at_operation).then_some(operation);
        letters.into_iter().chain(operation).min()
    }

    async fn take_letters<'b>(
        &mut self,
        bench: &'b Bench<'b>,
        crew: &mut Crew<'b, Done>,
        now: Instant,
    ) -> Result<(), StoreError> {
        self.say_what_is_left_out(bench, crew).await;
        let limit = if self.pace.is_limited() { 1 } else { self.free() };
        let claiming = bench.store.claim(self.with.claim(limit), self.with.actor.clone());
        let claimed = match crew.beside(claiming).await {
            Ok(claimed) => claimed,
            Err(error) => return self.letters_failed(&error),
        };
        let found = u32::try_from(claimed.len()).unwrap_or(u32::MAX);
        let wait = if found < limit { about(self.with.every) } else { Duration::ZERO };
        self.letters.again(&self.with.name, now, wait);
        let leased = claimed.into_iter().map(|claimed| (Lease::new(Arc::clone(&bench.store), &claimed), claimed));
        for (lease, claimed) in leased.collect::<Vec<_>>() {
            // Asked to stop meanwhile, it begins nothing: the leases are given back.
            if !self.with.stop.is_set() {
                self.pace.started(now);
                self.at_letters += 1;
                crew.add(async move { Done::Letter(bench.turn(claimed, lease).await) });
            }
        }
        Ok(())
    }

    async fn take_an_operation<'b>(
        &mut self,
        bench: &'b Bench<'b>,
        crew: &mut Crew<'b, Done>,
        now: Instant,
    ) -> Result<(), StoreError> {
        let waiting = match crew.beside(self.with.store.waiting(OPEN)).await {
            Ok(waiting) => waiting,
            Err(error) => return self.operations_failed(&error),
        };
        self.operations.again(&self.with.name, now, about(self.with.every));
        let kinds = self.with.handlers.kinds();
        let suits = |operation: &Operation| {
            let of_filter = &operation.filter.kinds;
            let has_handler = of_filter.is_empty() || of_filter.iter().any(|kind| kinds.contains(kind));
            operation.verb == Verb::Replay && has_handler
        };
        if let Some(operation) = waiting.into_iter().find(suits) {
            self.at_operation = true;
            crew.add(async move { Done::Operation(bench.runner.run_by(operation.id, bench.timer).await.map(drop)) });
        }
        Ok(())
    }

    fn letters_failed(&mut self, error: &StoreError) -> Result<(), StoreError> {
        self.report.failures += 1;
        let now = clock::monotonic();
        helps(error).map(|()| self.letters.failed(&self.with.name, &error.to_string(), now))
    }

    fn operations_failed(&mut self, error: &StoreError) -> Result<(), StoreError> {
        self.report.failures += 1;
        let now = clock::monotonic();
        helps(error).map(|()| self.operations.failed(&self.with.name, &error.to_string(), now))
    }

    fn write_down(&mut self, done: Done) -> Result<(), StoreError> {
        match done {
            Done::Operation(ended) => {
                self.at_operation = false;
                match ended {
                    Ok(()) => {
                        self.report.operations += 1;
                        // The next one, if there is any, need not wait.
                        self.operations.again(&self.with.name, clock::monotonic(), Duration::ZERO);
                    }
                    // Somebody else has it, or it was steered.
                    Err(error) if matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::StaleLease) => {}
                    Err(error) => self.operations_failed(&error)?,
                }
            }
            Done::Letter(turn) => {
                self.at_letters = self.at_letters.saturating_sub(1);
                self.count(turn)?;
            }
        }
        if let Some(see) = &self.with.progress {
            see(&self.report);
        }
        Ok(())
    }

    fn count(&mut self, turn: Turn) -> Result<(), StoreError> {
        match turn {
            Turn::Result { state, is_gone } => {
                match state {
                    LetterState::Recovered => self.report.recovered += 1,
                    LetterState::Abandoned => self.report.abandoned += 1,
                    LetterState::Discarded if is_gone => self.report.gone += 1,
                    _ => self.report.still_failing += 1,
                }
                self.handlers.fine(&self.with.name);
            }
            Turn::Late => self.report.late += 1,
            Turn::NotStarted { stops } => {
                self.report.not_started += 1;
                if let Some(why) = stops {
                    self.report.failures += 1;
                    self.handlers.failed(&self.with.name, &why, clock::monotonic());
                }
            }
            // Whether it was written is not known; its lease was given back.
            Turn::Failed(error) => self.letters_failed(&error)?,
        }
        Ok(())
    }

    /// Once: which classes wait for a person. It only informs: where it fails, the claim that follows says so.
    async fn say_what_is_left_out<'b>(&mut self, bench: &'b Bench<'b>, crew: &mut Crew<'b, Done>) {
        if self.has_said_what_is_left_out || !self.with.leaves_permanent_out() {
            return;
        }
        let mut filter = Filter { states: vec![LetterState::Parked], ..self.with.filter.clone() };
        filter.dispositions = vec![Disposition::Permanent];
        let handled = self.with.handlers.kinds();
        if filter.kinds.is_empty() {
            filter.kinds = handled;
        } else {
            filter.kinds.retain(|kind| handled.contains(kind));
            if filter.kinds.is_empty() {
                return;
            }
        }
        let question = Aggregate::new(filter, [GroupKey::ErrorClass]);
        let Ok(groups) = crew.beside(bench.store.aggregate(question)).await else { return };
        self.has_said_what_is_left_out = true;
        let classes = groups.into_iter().map(|group| (group.keys.concat(), group.letters));
        self.report.left_out = classes.collect();
        if !self.report.left_out.is_empty() {
            let message = format!(
                "{} leaves out parked letters that failed for good: {}; replay them by hand, or have it take permanent ones",
                self.with.name,
                self.report.left_out()
            );
            Notice::warning("replay_worker_leaves_out", "", message).say();
        }
    }
}

/// Whether waiting may help.
fn helps(error: &StoreError) -> Result<(), StoreError> {
    match error.kind() {
        StoreErrorKind::Closed | StoreErrorKind::Invalid => Err(error.clone()),
        _ => Ok(()),
    }
}

impl Bench<'_> {
    /// Until something ends, the time has come, or it is asked to stop.
    async fn wait(&self, crew: &mut Crew<'_, Done>, until: Option<Instant>, is_stopping: bool) {
        let left = |at: Instant| at.saturating_duration_since(clock::monotonic());
        let mut alarm = until.map(|at| pause(left(at), self.timer));
        crew.until(|cx| {
            let rings = alarm.as_mut().is_some_and(|alarm| alarm.as_mut().poll(cx).is_ready());
            let is_asked = !is_stopping && self.with.stop.poll_set(cx).is_ready();
            if rings || is_asked { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// One letter's turn: its handler, and its result.
    async fn turn(&self, claimed: Claimed, mut lease: Lease) -> Turn {
        let with = self.with;
        let is_unreadable = is_without_payload(&claimed.payload);
        let ended = match with.handlers.get(&claimed.row.kind) {
            _ if is_unreadable => Ended::NotStarted { why: String::new(), stops: false },
            None => Ended::NotStarted { why: String::new(), stops: false },
            Some(handler) => {
                let ways = Ways { heart: self.heart.as_ref(), lease: with.lease, threads: true };
                work(handler, claimed, &mut lease, &ways).await
            }
        };
        match ended {
            // It is over already.
            Ended::Lost => Turn::Late,
            Ended::Result(result) => self.finish(lease, result).await,
            Ended::NotStarted { why, stops } => {
                let wait = if is_unreadable { UNREADABLE } else { NOT_STARTED };
                let release = Release::Later { fence: lease.fence, wait };
                let given = self.store.release(lease.letter_id.clone(), release, with.actor.clone()).await;
                settle(lease, given.map(|_| Turn::NotStarted { stops: stops.then_some(why) }))
            }
        }
    }

    async fn finish(&self, lease: Lease, result: Finish) -> Turn {
        let is_gone = matches!(result.outcome, ReplayOutcome::Gone(_));
        let written = self.store.finish(result, self.with.actor.clone()).await;
        settle(lease, written.map(|row| Turn::Result { state: row.state, is_gone }))
    }
}

/// The turn, once the store has said what became of the lease.
fn settle(mut lease: Lease, written: Result<Turn, StoreError>) -> Turn {
    match written {
        Ok(turn) => {
            lease.is_over();
            turn
        }
        Err(error) if error.kind() == StoreErrorKind::StaleLease => {
            lease.is_over();
            Turn::Late
        }
        Err(error) => Turn::Failed(error),
    }
}
