//! One life of a worker: it parks, replays, and meddles like an operator, until it is killed.

use std::fmt::Write;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use super::dice::Dice;
use super::plan::{Fault, Plan};
use super::witness::{Event, Witness};
use crate::attempt::AttemptRecord;
use crate::dead_letter::{
    Actor, ClaimRequest, Claimed, DeadLetter, DeadLetterStore, Edit, Failure, Filter, Finish, LetterRow, LetterState,
    Order, PageRequest, Parking, Payload, Release, ReplayOutcome, StoreClock, to_millis,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::id::Id;
use crate::stop::StopReason;
use crate::verdict::Disposition;

const KINDS: [&str; 2] = ["fetch", "store"];

/// How a worker waits.
pub(super) enum Pace {
    /// Lets other tasks move; the run moves the clock.
    Task,
    /// In real time, on a clock that is so many milliseconds ahead of the system's.
    Process { ahead: Arc<AtomicI64> },
}

pub(super) struct Worker<'a, S> {
    store: &'a S,
    clock: StoreClock,
    pace: Pace,
    witness: Witness,
    dice: Dice,
    /// Jobs of this life are numbered from here on.
    first_job: u64,
    plan: &'a Plan,
    actor: Actor,
    /// Results that are kept back, to be written when they are long late.
    kept_back: Vec<Finish>,
}

impl<'a, S: DeadLetterStore> Worker<'a, S> {
    pub(super) fn new(
        store: &'a S,
        plan: &'a Plan,
        (worker, life): (usize, u64),
        clock: StoreClock,
        pace: Pace,
        witness: Witness,
    ) -> Self {
        Self {
            store,
            clock,
            pace,
            witness,
            dice: Dice::part(plan.seed, (worker as u64) << 32 | life),
            // Jobs of earlier lives fail again, and new ones come: letters are merged, and never all abandoned.
            first_job: life * plan.jobs / 8,
            plan,
            actor: Actor::new(format!("worker-{worker}-{life}"), "chaos"),
            kept_back: Vec::new(),
        }
    }

    /// Until it is dropped or killed, or cannot tell what it does any more.
    pub(super) async fn live(mut self) -> io::Error {
        loop {
            if let Err(error) = self.act().await {
                return error;
            }
        }
    }

    async fn act(&mut self) -> io::Result<()> {
        match self.dice.below(26) {
            0..=8 => self.produce().await,
            9..=18 => self.replay().await,
            19 => self.reap().await,
            20 => self.force().await,
            21..=23 => self.by_hand().await,
            24 => self.finish_late().await,
            _ => {
                self.jump()?;
                self.pause().await;
                Ok(())
            }
        }
    }

    /// Parks a few letters at once, and some of them twice: a sender that got no answer sends again.
    async fn produce(&mut self) -> io::Result<()> {
        let mut tickets = Vec::new();
        for _ in 0..=self.dice.below(6) {
            let letter = self.letter();
            let name = format!("{}/{}", letter.kind, letter.job_id.as_deref().unwrap_or_default());
            let id = letter.park_id.to_string();
            self.tell(Event::Sent, &id, letter.attempts.into(), &name)?;
            let again = self.dice.one_in(12).then(|| letter.clone());
            tickets.push((id.clone(), self.store.submit(letter)));
            tickets.extend(again.map(|letter| (id, self.store.submit(letter))));
            self.step().await;
        }
        for (id, ticket) in tickets {
            let parking = ticket.await;
            self.step().await;
            match parking {
                Parking::Parked { letter_id } => self.tell(Event::Parked, &id, 0, &letter_id)?,
                Parking::Spilled { path, .. } => self.tell(Event::Spilled, &id, 0, &path.display().to_string())?,
                other => self.tell(Event::Lost, &id, 0, &other.to_string())?,
            }
        }
        Ok(())
    }

    fn letter(&mut self) -> DeadLetter {
        let job = self.first_job + self.dice.below(self.plan.jobs);
        let now = self.clock.now();
        let kind = if job % 3 == 0 { KINDS[0] } else { KINDS[1] };
        let mut letter = DeadLetter::new(kind, StopReason::Exhausted, now);
        letter.job_id = Some(format!("job-{job}"));
        letter.payload = Payload::Json(payload(&format!("job-{job}"), &letter.park_id.to_string()));
        letter.disposition = Disposition::Retryable;
        letter.class = Some("rate_limit".to_owned());
        letter.code = Some(429);
        letter.error_message = "too many requests".into();
        letter.attempts = 1 + u32::try_from(self.dice.below(3)).unwrap_or(0);
        letter.history = vec![AttemptRecord::new(1, now, Duration::ZERO, "rate_limit", Some(429), "too many requests")];
        letter
    }

    async fn replay(&mut self) -> io::Result<()> {
        let mut request = ClaimRequest::new(KINDS, self.actor.name.clone());
        request.limit = 1 + u32::try_from(self.dice.below(3)).unwrap_or(0);
        request.lease = self.plan.lease;
        request.ignore_backoff = true;
        request.ignore_not_before = true;
        // A task does not take its process along: what it keeps alive would live for ever.
        let may_keep_alive = matches!(self.pace, Pace::Process { .. }) && self.store.capabilities().heartbeats;
        let kept = may_keep_alive && self.dice.one_in(4);
        request.keep_alive = kept;
        let claimed = self.store.claim(request, self.actor.clone()).await;
        self.step().await;
        for letter in self.heard("claim", claimed)?.unwrap_or_default() {
            let until = letter.row.lease_until.filter(|_| !kept).map(|until| to_millis(until).to_string());
            let until = until.unwrap_or_else(|| "kept".to_owned());
            self.tell(Event::Claimed, &letter.row.letter_id, letter.row.fence, &until)?;
            self.handle(&letter).await?;
        }
        Ok(())
    }

    /// The handler, and what becomes of its letter.
    async fn handle(&mut self, claimed: &Claimed) -> io::Result<()> {
        let (id, fence) = (&claimed.row.letter_id, claimed.row.fence);
        self.tell(Event::Ran, id, fence, &claimed.row.idempotency_key())?;
        self.step().await;
        match self.dice.below(24) {
            // Forgets it.
            0 => return Ok(()),
            1 => return self.give_up(id, fence).await,
            2 => {
                let result = self.result(claimed);
                self.kept_back.push(result);
                return Ok(());
            }
            3 | 4 if self.plan.has(Fault::OutlivedLease) => self.outlive(claimed.row.lease_until).await?,
            5 | 6 => self.extend(id, fence).await?,
            _ => {}
        }
        let result = self.result(claimed);
        if !self.finish(result.clone()).await? && self.dice.one_in(2) {
            // Not known whether it was written: told again.
            self.finish(result).await?;
        } else if self.dice.one_in(16) {
            self.finish(result).await?;
        }
        Ok(())
    }

    fn result(&mut self, claimed: &Claimed) -> Finish {
        let job: u64 = claimed.row.job_id.strip_prefix("job-").and_then(|job| job.parse().ok()).unwrap_or(1);
        let failure = || Failure::new(StopReason::Exhausted, Disposition::Retryable, "too many requests again");
        let outcome = match self.dice.below(16) {
            _ if job % 7 == 0 => ReplayOutcome::Failed(failure()),
            0 => ReplayOutcome::Gone(failure()),
            1..=4 => ReplayOutcome::Failed(failure()),
            _ => ReplayOutcome::Recovered,
        };
        let mut result = Finish::new(claimed.row.letter_id.clone(), claimed.row.fence, outcome);
        result.attempts = 1 + u32::try_from(self.dice.below(3)).unwrap_or(0);
        result
    }

    /// Writes a result. `false`: whether it was written is not known.
    async fn finish(&mut self, result: Finish) -> io::Result<bool> {
        let (id, fence) = (result.letter_id.clone(), result.fence);
        let outcome = match &result.outcome {
            ReplayOutcome::Recovered => "succeeded",
            ReplayOutcome::Gone(_) => "gone",
            ReplayOutcome::Failed(_) => "failed",
        };
        self.tell(Event::Finishing, &id, fence, &format!("{outcome} {}", result.attempts))?;
        let answer = self.store.finish(result, self.actor.clone()).await;
        self.step().await;
        match answer {
            Ok(row) if row.letter_id != id => self.tell(Event::Wrong, &id, fence, "another letter was finished")?,
            Ok(row) => self.tell(Event::Finished, &id, fence, row.state.as_str())?,
            Err(error) if error.kind() == StoreErrorKind::StaleLease => self.tell(Event::Stale, &id, fence, "-")?,
            Err(error) => {
                self.tell(Event::Unknown, &id, fence, &error.to_string())?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Until its lease has ended, or its clock was set back so far that it would take too long.
    async fn outlive(&mut self, until: Option<SystemTime>) -> io::Result<()> {
        self.tell(Event::Met, "lease", 0, "-")?;
        let until = until.unwrap_or_else(|| self.clock.now());
        for _ in 0..400 {
            if self.clock.now() > until + self.plan.lease / 4 {
                break;
            }
            self.pause().await;
        }
        Ok(())
    }

    async fn extend(&mut self, id: &str, fence: u64) -> io::Result<()> {
        self.tell(Event::Extending, id, fence, "-")?;
        let extended = self.store.extend(id.to_owned(), fence, self.plan.lease).await;
        self.step().await;
        self.heard("extend", extended).map(drop)
    }

    async fn give_up(&mut self, id: &str, fence: u64) -> io::Result<()> {
        self.tell(Event::Releasing, id, fence, "-")?;
        let released = self.store.release(id.to_owned(), Release::Held { fence }, self.actor.clone()).await;
        self.step().await;
        self.heard("release", released).map(drop)
    }

    async fn finish_late(&mut self) -> io::Result<()> {
        for result in std::mem::take(&mut self.kept_back) {
            self.finish(result).await?;
        }
        Ok(())
    }

    async fn reap(&mut self) -> io::Result<()> {
        let reaped = self.store.reap(self.actor.clone()).await;
        self.step().await;
        self.heard("reap", reaped).map(drop)
    }

    /// An operator takes a lease away.
    async fn force(&mut self) -> io::Result<()> {
        let Some(LetterRow { letter_id: id, .. }) = self.find(LetterState::Replaying).await? else { return Ok(()) };
        self.tell(Event::Forcing, &id, 0, "-")?;
        let forced = self.store.release(id, Release::Forced, self.actor.clone()).await;
        self.step().await;
        self.heard("release", forced).map(drop)
    }

    /// An operator does something to one letter: mostly gives an abandoned one another chance.
    async fn by_hand(&mut self) -> io::Result<()> {
        let verb = self.dice.below(6);
        let state = if verb < 3 { LetterState::Abandoned } else { LetterState::Parked };
        let Some(row) = self.find(state).await? else { return Ok(()) };
        let (id, actor) = (row.letter_id.clone(), self.actor.clone());
        let done = match verb {
            0..=2 => {
                self.tell(Event::Restoring, &id, 0, "-")?;
                self.store.restore(id, 2, actor).await.map(drop)
            }
            3 => {
                self.tell(Event::Discarding, &id, 0, "-")?;
                self.store.discard(id, actor).await.map(drop)
            }
            4 => {
                self.tell(Event::Resolving, &id, 0, "-")?;
                self.store.resolve(id, actor).await.map(drop)
            }
            _ => {
                let mark = Id::new(self.clock.now()).to_string();
                self.tell(Event::Editing, &id, 0, &mark)?;
                let edit = Edit::new(id, row.payload_revision, payload(&row.job_id, &mark));
                self.store.edit(edit, actor).await.map(drop)
            }
        };
        self.step().await;
        self.heard("by_hand", done).map(drop)
    }

    async fn find(&mut self, state: LetterState) -> io::Result<Option<LetterRow>> {
        let mut filter = Filter::all();
        filter.states = vec![state];
        let page = self.store.list(filter, PageRequest::first(Order::NewestFirst, 20)).await;
        self.step().await;
        let rows = self.heard("list", page)?.map(|page| page.rows).unwrap_or_default();
        Ok(self.dice.pick(&rows).cloned())
    }

    /// A verb's value. What it says no with is told; what is only late is no news.
    fn heard<T>(&self, verb: &str, result: Result<T, StoreError>) -> io::Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                if !matches!(error.kind(), StoreErrorKind::StaleLease | StoreErrorKind::Conflict) {
                    self.tell(Event::Refused, verb, 0, &format!("{:?}: {error}", error.kind()))?;
                }
                Ok(None)
            }
        }
    }

    fn tell(&self, event: Event, id: &str, number: u64, text: &str) -> io::Result<()> {
        self.witness.tell(event, id, number, text)
    }

    /// The clock of a process jumps to anywhere within a few leases; that of tasks is moved by the run.
    fn jump(&mut self) -> io::Result<()> {
        if let (Pace::Process { ahead }, true) = (&self.pace, self.plan.has(Fault::ClockJumps)) {
            let lease = u64::try_from(self.plan.lease.as_millis()).unwrap_or(u64::MAX);
            let most = i64::try_from(max_jump(lease)).unwrap_or(i64::MAX);
            let by = i64::try_from(self.dice.below(max_jump(lease) * 2 + 1)).unwrap_or(0) - most;
            // Mostly it is right.
            ahead.store(if self.dice.one_in(3) { by } else { 0 }, Ordering::SeqCst);
            self.tell(Event::Met, "clock", 0, "-")?;
        }
        Ok(())
    }

    /// A place where a task can be interrupted, or dropped. Processes are killed wherever they are.
    async fn step(&self) {
        if matches!(self.pace, Pace::Task) {
            yield_now().await;
        }
    }

    /// Lets a little time pass.
    async fn pause(&self) {
        match self.pace {
            Pace::Task => self.step().await,
            Pace::Process { .. } => std::thread::sleep(Duration::from_millis(3)),
        }
    }
}

/// The payload of a parking: one in 16 is large, and does not compress well.
pub(super) fn payload(job: &str, park_id: &str) -> String {
    let mut seed = park_id.bytes().fold(0_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let words = if seed % 16 == 0 { 5_000 } else { 2 };
    let mut text = format!("{{\"job\":\"{job}\",\"sent\":\"{park_id}\",\"filler\":\"");
    for _ in 0..words {
        seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        // Writing to a text does not fail.
        let _written = write!(text, "{seed:016x}");
    }
    text + "\"}"
}

/// How far clocks jump, in milliseconds, for a lease of so many.
pub(super) const fn max_jump(lease: u64) -> u64 {
    lease.saturating_mul(4)
}

async fn yield_now() {
    let mut polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
