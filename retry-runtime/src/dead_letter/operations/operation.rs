//! An operation, and what it may do next.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::ramp::{failing_too_often, next_stage, stage_total};
use super::{Leave, Next, OperationOptions, OperationStatus, OutcomeCounts, Steer, Verb};
use crate::dead_letter::{Actor, Filter, lease_end};
use crate::error::{StoreError, StoreErrorKind};

/// A bulk operation, as plain data.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Operation {
    /// Its id.
    pub id: String,
    /// What it does.
    pub verb: Verb,
    /// Where it stands.
    pub status: OperationStatus,
    /// The filter its members were frozen by.
    pub filter: Filter,
    /// How it goes on.
    pub options: OperationOptions,
    /// The highest number of any letter when the members were frozen: what came later is no member.
    pub cutoff_seq: u64,
    /// Who wanted it, and why.
    pub actor: Actor,
    /// Raised when it is taken by a runner, and when it is resumed: a runner with an older one is refused.
    pub fence: u64,
    /// Who runs it, for people to read.
    pub runner: Option<String>,
    /// When the runner's lease ends.
    pub lease_until: Option<SystemTime>,
    /// How many members ended how.
    pub counts: OutcomeCounts,
    /// The stage of the ramp: 1, 10, 100, ...; `None` without one.
    pub stage: Option<u64>,
    /// Results, and failures among them, that were there when it was last started or resumed: the failure ratio and the ramp
    /// count from here.
    pub counted_from: (u64, u64),
    /// Why it stopped; what it waits for.
    pub note: Option<String>,
    /// When it was made, and its members frozen.
    pub created_at: SystemTime,
    /// When it last changed.
    pub updated_at: SystemTime,
    /// When it was over.
    pub finished_at: Option<SystemTime>,
}

/// A runner's right to an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationTicket {
    /// Which operation.
    pub op_id: String,
    /// The fence it was taken with.
    pub fence: u64,
}

impl OperationTicket {
    /// The right to an operation under a fence.
    pub fn new(op_id: impl Into<String>, fence: u64) -> Self {
        Self { op_id: op_id.into(), fence }
    }
}

/// What an operation may do next, by its counts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Room {
    /// Begin at most so many.
    Take(u64),
    /// Nothing before a result is in.
    Wait,
    /// Go on to this stage of the ramp.
    NextStage(u64),
    /// Pause, because.
    Stop(String),
}

impl Operation {
    /// An operation of a request whose members have just been frozen; for stores.
    #[allow(clippy::too_many_arguments, reason = "each is a fact of its own, and all are needed")]
    pub fn new(
        id: impl Into<String>,
        verb: Verb,
        filter: Filter,
        options: OperationOptions,
        actor: Actor,
        cutoff_seq: u64,
        now: SystemTime,
    ) -> Self {
        Self {
            id: id.into(),
            verb,
            status: OperationStatus::Pending,
            filter,
            stage: options.canary.then_some(1),
            options,
            cutoff_seq,
            actor,
            fence: 0,
            runner: None,
            lease_until: None,
            counts: OutcomeCounts::default(),
            counted_from: (0, 0),
            note: None,
            created_at: now,
            updated_at: now,
            finished_at: None,
        }
    }

    /// The right of the runner that has it now.
    pub fn ticket(&self) -> OperationTicket {
        OperationTicket::new(self.id.clone(), self.fence)
    }

    /// Refuses a runner that another one, or a resumption, has followed.
    ///
    /// # Errors
    /// `StaleLease` when the fence is not the operation's.
    pub fn check(&self, ticket: &OperationTicket) -> Result<(), StoreError> {
        if self.fence == ticket.fence {
            return Ok(());
        }
        let message = format!(
            "operation {}: fence {} was followed by {}; another runner has it",
            self.id, ticket.fence, self.fence
        );
        Err(StoreError::new(StoreErrorKind::StaleLease, message))
    }

    /// Whether a runner may take it at `now`, without force: it is pending, or its runner's lease has ended.
    pub fn is_waiting(&self, now: SystemTime) -> bool {
        match self.status {
            OperationStatus::Pending => true,
            OperationStatus::Running => self.lease_until.is_none_or(|end| end < now),
            _ => false,
        }
    }

    /// Gives it to a runner: one that waits, or one whose runner's lease has ended; `force` takes it from a live one too.
    ///
    /// # Errors
    /// `Conflict` when it is paused or over, or another runner's lease lives.
    pub fn take(&mut self, runner: &str, lease: Duration, force: bool, now: SystemTime) -> Result<(), StoreError> {
        let conflict = |message: String| Err(StoreError::new(StoreErrorKind::Conflict, message));
        match self.status {
            OperationStatus::Pending => {}
            OperationStatus::Running => {
                if !self.is_waiting(now) && !force {
                    let runner = self.runner.as_deref().unwrap_or_default();
                    return conflict(format!("operation {} is run by {runner}, whose lease has not ended", self.id));
                }
            }
            OperationStatus::Paused | OperationStatus::Failed => {
                return conflict(format!("operation {} is {}: resume it first", self.id, self.status));
            }
            OperationStatus::Done | OperationStatus::Cancelled => {
                return conflict(format!("operation {} is {}", self.id, self.status));
            }
        }
        self.status = OperationStatus::Running;
        self.fence += 1;
        self.runner = Some(runner.to_owned());
        self.lease_until = Some(lease_end(now, lease));
        self.note = None;
        self.updated_at = now;
        Ok(())
    }

    /// Extends the runner's lease, while there is something to run.
    ///
    /// # Errors
    /// `StaleLease` as [`check`](Self::check).
    pub fn keep(&mut self, ticket: &OperationTicket, lease: Duration, now: SystemTime) -> Result<(), StoreError> {
        self.check(ticket)?;
        if self.status == OperationStatus::Running {
            self.lease_until = Some(lease_end(now, lease));
        }
        Ok(())
    }

    /// Does what an operator wants.
    ///
    /// # Errors
    /// `Conflict` as [`Steer::from`].
    pub fn steer(&mut self, steer: Steer, now: SystemTime) -> Result<(), StoreError> {
        self.status = steer.from(self.status)?;
        match steer {
            Steer::Pause => self.note = Some("paused by hand".to_owned()),
            Steer::Resume => {
                // The runner that stopped may still be there: it stops at its next write.
                self.fence += 1;
                self.note = None;
                self.counted_from = (self.counts.results(), self.counts.failures());
                self.stage = self.options.canary.then_some(1);
            }
            Steer::Cancel => self.finished_at = Some(now),
        }
        self.without_runner(now);
        Ok(())
    }

    /// The runner goes. Where the operation was steered meanwhile, it stays as it is.
    ///
    /// # Errors
    /// `StaleLease` as [`check`](Self::check).
    pub fn leave(&mut self, ticket: &OperationTicket, leave: Leave, now: SystemTime) -> Result<(), StoreError> {
        self.check(ticket)?;
        if self.status == OperationStatus::Running {
            (self.status, self.note) = match leave {
                Leave::Released => (OperationStatus::Pending, None),
                Leave::Paused(why) => (OperationStatus::Paused, Some(why)),
                Leave::Failed(why) => (OperationStatus::Failed, Some(why)),
            };
            self.without_runner(now);
        }
        Ok(())
    }

    /// What a running operation may do next.
    pub fn room(&self) -> Room {
        let ended = self.counts.results().saturating_sub(self.counted_from.0);
        let failed = self.counts.failures().saturating_sub(self.counted_from.1);
        let stops = |after: u64| {
            let ratio = self.options.stop_ratio?;
            let share = format!("{failed} of {ended} replays failed, the limit is a share of {ratio}");
            failing_too_often(ended, failed, ratio, after).then_some(share)
        };
        if let Some(why) = stops(self.options.stop_after) {
            return Room::Stop(why);
        }
        let Some(stage) = self.stage else { return Room::Take(u64::MAX) };
        let begun = ended.saturating_add(self.counts.running());
        match stage_total(stage).saturating_sub(begun) {
            0 if self.counts.running() > 0 => Room::Wait,
            0 => match stops(1) {
                Some(why) => Room::Stop(why),
                None => Room::NextStage(next_stage(stage)),
            },
            left => Room::Take(left),
        }
    }

    /// Whether a runner that claims members begins another one (`None`), or how it goes on instead: for stores, before each
    /// member. Goes on to the next stage of the ramp, pauses at the failure ratio, and ends behind the last member.
    /// `claimed`: some were claimed in this go.
    pub fn before_next(&mut self, claimed: bool, now: SystemTime) -> Option<Next> {
        let unless_claimed = if claimed { Next::More } else { Next::Wait };
        loop {
            if self.status != OperationStatus::Running {
                return Some(Next::Over);
            }
            if self.counts.pending() == 0 {
                if self.counts.running() > 0 {
                    return Some(unless_claimed);
                }
                self.run_out(now);
                return Some(Next::Over);
            }
            match self.room() {
                Room::Take(_) => return None,
                Room::Wait => return Some(unless_claimed),
                Room::NextStage(stage) => self.stage = Some(stage),
                Room::Stop(why) => {
                    self.stop(why, now);
                    return Some(Next::Over);
                }
            }
        }
    }

    /// No member is left to begin and none is under way: it is done, or waits for what keeps the rest.
    pub fn run_out(&mut self, now: SystemTime) {
        if self.counts.waiting() == 0 {
            self.status = OperationStatus::Done;
            self.finished_at = Some(now);
            self.note = None;
        } else {
            let waiting = self.counts.iter().filter(|(outcome, _)| outcome.is_waiting());
            let waiting: Vec<_> =
                waiting.map(|(outcome, n)| format!("{n} {}", outcome.as_str().replace('_', " "))).collect();
            self.status = OperationStatus::Paused;
            self.note = Some(format!("{}: resume it when they can be replayed", waiting.join(", ")));
        }
        self.without_runner(now);
    }

    /// Pauses it.
    pub fn stop(&mut self, why: String, now: SystemTime) {
        self.status = OperationStatus::Paused;
        self.note = Some(why);
        self.without_runner(now);
    }

    fn without_runner(&mut self, now: SystemTime) {
        self.runner = None;
        self.lease_until = None;
        self.updated_at = now;
    }
}

/// `paused: 40 recovered, 10 not due (10 not due: resume it when they can be replayed)`: how it stands, and why.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.counts)?;
        match &self.note {
            Some(note) => write!(f, " ({note})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests fail by panicking
    use super::*;
    use crate::dead_letter::ItemOutcome;
    use std::time::UNIX_EPOCH;

    const LEASE: Duration = Duration::from_secs(60);

    fn operation(options: OperationOptions, members: u64) -> Operation {
        let actor = Actor::new("ada", "");
        let mut operation = Operation::new("1", Verb::Replay, Filter::parked(), options, actor, members, UNIX_EPOCH);
        operation.counts.add(ItemOutcome::Pending, members);
        operation
    }

    fn ends(operation: &mut Operation, outcome: ItemOutcome, n: u64) {
        for _ in 0..n {
            operation.counts.step(ItemOutcome::Pending, outcome);
        }
    }

    // D21
    #[test]
    fn one_runner_at_a_time_and_the_older_one_is_refused() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let mut op = operation(OperationOptions::default(), 3);
        op.take("a", LEASE, false, at(0)).unwrap();
        let first = op.ticket();
        assert_eq!(op.take("b", LEASE, false, at(60)).map_err(|error| error.kind()), Err(StoreErrorKind::Conflict));
        op.keep(&first, LEASE, at(30)).unwrap();
        assert!(op.take("b", LEASE, false, at(90)).is_err());
        op.take("b", LEASE, false, at(91)).unwrap();
        assert_eq!(op.keep(&first, LEASE, at(92)).map_err(|error| error.kind()), Err(StoreErrorKind::StaleLease));
        op.take("c", LEASE, true, at(92)).unwrap();
        assert_eq!(op.fence, 3);
        assert!(op.leave(&first, Leave::Released, at(93)).is_err());
        op.leave(&op.ticket(), Leave::Released, at(93)).unwrap();
        assert_eq!((op.status, op.runner.as_deref(), op.lease_until), (OperationStatus::Pending, None, None));
        // Resumed, its fence rises once more.
        op.steer(Steer::Pause, at(94)).unwrap();
        assert!(op.take("d", LEASE, true, at(95)).is_err(), "a paused one is not taken");
        op.steer(Steer::Resume, at(95)).unwrap();
        assert_eq!(op.fence, 4);
    }

    // D21: what an operator said is not undone by the runner that goes.
    #[test]
    fn a_runner_that_goes_leaves_what_was_steered() {
        let mut op = operation(OperationOptions::default(), 3);
        op.take("a", LEASE, false, UNIX_EPOCH).unwrap();
        let ticket = op.ticket();
        op.steer(Steer::Cancel, UNIX_EPOCH).unwrap();
        op.leave(&ticket, Leave::Paused("why".into()), UNIX_EPOCH).unwrap();
        assert_eq!((op.status, op.finished_at), (OperationStatus::Cancelled, Some(UNIX_EPOCH)));
        op.keep(&ticket, LEASE, UNIX_EPOCH).unwrap();
        assert_eq!(op.lease_until, None);
    }

    // B25
    #[test]
    fn a_ramp_goes_on_when_all_results_are_in_and_good() {
        let options = OperationOptions { canary: true, ..OperationOptions::default() };
        let mut op = operation(options, 1_000);
        assert_eq!(op.room(), Room::Take(1));
        ends(&mut op, ItemOutcome::Running, 1);
        assert_eq!(op.room(), Room::Wait);
        op.counts.step(ItemOutcome::Running, ItemOutcome::Recovered);
        assert_eq!(op.room(), Room::NextStage(10));
        op.stage = Some(10);
        assert_eq!(op.room(), Room::Take(10));
        ends(&mut op, ItemOutcome::Recovered, 6);
        ends(&mut op, ItemOutcome::StillFailing, 4);
        // Passed over is not begun.
        ends(&mut op, ItemOutcome::Edited, 50);
        assert_eq!(op.room(), Room::NextStage(100));
        op.stage = Some(100);
        ends(&mut op, ItemOutcome::Running, 7);
        assert_eq!(op.room(), Room::Take(93));
    }

    // B25, S4: one letter that fails is enough to stop a ramp at its first stage.
    #[test]
    fn a_ramp_stops_at_a_bad_stage_and_begins_anew() {
        let options = OperationOptions { canary: true, ..OperationOptions::default() };
        let mut op = operation(options, 100);
        op.take("a", LEASE, false, UNIX_EPOCH).unwrap();
        ends(&mut op, ItemOutcome::StillFailing, 1);
        let Room::Stop(why) = op.room() else { panic!("{:?}", op.room()) };
        assert_eq!(why, "1 of 1 replays failed, the limit is a share of 0.5");
        op.stop(why, UNIX_EPOCH);
        op.steer(Steer::Resume, UNIX_EPOCH).unwrap();
        op.take("a", LEASE, false, UNIX_EPOCH).unwrap();
        assert_eq!((op.room(), op.counted_from), (Room::Take(1), (1, 1)));
    }

    // B16: the default limit counts once 20 have ended; without one, nothing stops.
    #[test]
    fn half_of_twenty_stops() {
        let mut op = operation(OperationOptions::default(), 100);
        ends(&mut op, ItemOutcome::Recovered, 10);
        ends(&mut op, ItemOutcome::StillFailing, 9);
        assert_eq!(op.room(), Room::Take(u64::MAX));
        ends(&mut op, ItemOutcome::Abandoned, 1);
        assert!(matches!(op.room(), Room::Stop(_)));
        op.options.stop_ratio = None;
        assert_eq!(op.room(), Room::Take(u64::MAX));
    }

    // C51, G105: what waits is not done.
    #[test]
    fn what_waits_keeps_it_from_being_done() {
        let mut op = operation(OperationOptions::default(), 5);
        ends(&mut op, ItemOutcome::Recovered, 2);
        ends(&mut op, ItemOutcome::Blocked, 2);
        ends(&mut op, ItemOutcome::NotDue, 1);
        op.run_out(UNIX_EPOCH);
        let note = "2 blocked, 1 not due: resume it when they can be replayed";
        assert_eq!((op.status, op.note.as_deref(), op.finished_at), (OperationStatus::Paused, Some(note), None));
        let text = op.to_string();
        assert!(text.starts_with("paused: ") && text.ends_with(&format!(" ({note})")), "{text}");
        let mut op = operation(OperationOptions::default(), 1);
        ends(&mut op, ItemOutcome::Edited, 1);
        op.run_out(UNIX_EPOCH);
        assert_eq!((op.status, op.finished_at), (OperationStatus::Done, Some(UNIX_EPOCH)));
    }
}
