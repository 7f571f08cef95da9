//! What waits for the writer's thread.
//!
//! Handing over never blocks: beyond the bound a command is still taken, counted and warned about. Whoever awaits an
//! answer feels the length of the queue; whoever does not (a drop guard) is not held up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use retry_runtime::dead_letter::{DeadLetter, Parking};
use retry_runtime::error::StoreError;
use retry_runtime::observe::Notice;
use retry_runtime::reply::Answer;

use crate::payload::Encoded;
use crate::rows::Tx;
use crate::worker::Worker;
use crate::worker::counts::{Counts, Key};
use crate::worker::leases::Leases;

/// Something for the writer to do.
pub(crate) enum Command {
    /// Park a letter; where that fails, the chain goes on.
    Park(Box<Pending>),
    /// Anything else; where that fails, the caller hears it.
    Verb(Box<dyn Verb>),
    /// Something that makes transactions of its own, between batches.
    Chore(Chore),
    /// Answered when everything that was due is done.
    Settle(Answer<()>),
}

/// Called once: with the worker, or why there is none.
pub(crate) type Chore = Box<dyn FnOnce(Result<&mut Worker, StoreError>) + Send>;

/// A letter on its way, with whoever waits for it.
pub(crate) struct Pending {
    pub(crate) letter: DeadLetter,
    pub(crate) answer: Answer<Parking>,
    /// The id it got; it counts only after the commit.
    pub(crate) letter_id: Option<String>,
    /// Its payload, where that is large.
    pub(crate) prepared: Option<Encoded>,
}

/// A change of the store. It may be run more than once before it is answered: what one transaction undid, the next one
/// does again.
pub(crate) trait Verb: Send {
    /// Makes the change, in a transaction.
    fn run(&mut self, tx: Tx<'_>) -> rusqlite::Result<()>;
    /// The change is durable, or it is not and why. Called once.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>, leases: &mut Leases);
}

/// So many commands may wait before it is said aloud.
const BOUND: usize = 10_000;

#[derive(Default)]
struct State {
    commands: VecDeque<Command>,
    /// Set once: nothing new is taken, and what is there is drained until then.
    closing: Option<Instant>,
    /// How many commands came while the queue was over its bound.
    overflowed: u64,
    over: bool,
    counts: Counts,
}

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    ready: Condvar,
}

/// What the writer took.
pub(crate) struct Taken {
    pub(crate) commands: Vec<Command>,
    /// The store is being closed, and has to be done by then.
    pub(crate) closing: Option<Instant>,
    /// Counts are to be written now.
    pub(crate) counts_are_due: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over. Gives the command back when the store is closed.
    pub(crate) fn push(&self, command: Command) -> Result<(), Command> {
        let mut state = self.lock();
        if state.closing.is_some() {
            return Err(command);
        }
        state.commands.push_back(command);
        let waiting = state.commands.len();
        let mut warn = false;
        if waiting > BOUND {
            state.overflowed += 1;
            warn = !std::mem::replace(&mut state.over, true);
        }
        drop(state);
        self.ready.notify_one();
        if warn {
            let message = format!("{waiting} changes wait for the store; it takes them more slowly than they come");
            Notice::warning("store_behind", "", message).say();
        }
        Ok(())
    }

    /// Takes what waits, at most `max`; waits only when nothing does, at most `limit`.
    pub(crate) fn take(&self, max: usize, limit: Option<Duration>) -> Taken {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut state = self.lock();
        while state.commands.is_empty() && state.closing.is_none() && !state.counts.is_due() {
            let next = end.into_iter().chain(state.counts.due).min();
            let left = next.map(|end| end.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) if left.is_zero() => break,
                Some(left) => self.ready.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.ready.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        let count = state.commands.len().min(max);
        let commands = state.commands.drain(..count).collect();
        if state.commands.len() <= BOUND {
            state.over = false;
        }
        Taken { commands, closing: state.closing, counts_are_due: state.counts.is_due() }
    }

    /// Nothing new is taken from now on. The first call decides the time.
    pub(crate) fn close(&self, end: Instant) {
        self.lock().closing.get_or_insert(end);
        self.ready.notify_all();
    }

    /// Adds to a counter, to be written within the interval. Gives the answer back when the store is closed.
    pub(crate) fn count(
        &self,
        key: Key,
        n: u64,
        answer: Answer<Result<(), StoreError>>,
        within: Duration,
    ) -> Result<(), Answer<Result<(), StoreError>>> {
        let mut state = self.lock();
        if state.closing.is_some() {
            return Err(answer);
        }
        state.counts.add(key, n);
        state.counts.answers.push(answer);
        let at = Instant::now() + within;
        let is_earlier = state.counts.due.is_none_or(|due| at < due);
        state.counts.write_by(at);
        drop(state);
        if is_earlier {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// Has the counts written now. The answer comes when they are; it is given back when the store is closed.
    pub(crate) fn flush_counts(
        &self,
        answer: Answer<Result<(), StoreError>>,
    ) -> Result<(), Answer<Result<(), StoreError>>> {
        let mut state = self.lock();
        if state.closing.is_some() {
            return Err(answer);
        }
        state.counts.answers.push(answer);
        state.counts.write_by(Instant::now());
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    pub(crate) fn take_counts(&self) -> Counts {
        std::mem::take(&mut self.lock().counts)
    }

    /// What could not be written waits for the next interval.
    pub(crate) fn put_counts_back(&self, values: BTreeMap<Key, u64>, within: Duration) {
        let mut state = self.lock();
        for (key, n) in values {
            state.counts.add(key, n);
        }
        // Not at once, however short the interval is: what failed now fails a moment later too.
        state.counts.write_by(Instant::now() + within.max(Duration::from_millis(100)));
    }

    /// What was counted and is not written.
    pub(crate) fn counted<T>(&self, look: impl FnOnce(&BTreeMap<Key, u64>) -> T) -> T {
        look(&self.lock().counts.values)
    }

    /// How many commands wait, and how many ever came while too many did.
    pub(crate) fn lengths(&self) -> (usize, u64) {
        let state = self.lock();
        (state.commands.len(), state.overflowed)
    }
}
