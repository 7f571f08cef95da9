//! What the handles of a sink and its worker share: the queue, and the way of a letter the sink does not take.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::outage::Outage;
use crate::dead_letter::{DeadLetter, Parking, Spill, Ticket, lose};
use crate::error::{StoreError, StoreErrorKind};
use crate::observe::Notice;
use crate::reply::{Answer, Reply};

/// So many letters may wait before it is said aloud. Those beyond are taken all the same: a drop guard cannot wait.
pub(super) const BOUND: usize = 1_000;

struct Pending {
    letter: Arc<DeadLetter>,
    answer: Answer<Parking>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Pending>,
    /// The letter the worker has. It stays here, so that closing can spill it when the worker is stuck.
    in_flight: Option<Pending>,
    /// The worker has not settled its letter yet, or not ended its import.
    is_busy: bool,
    is_closed: bool,
    is_over: bool,
    overflowed: u64,
    waker: Option<Waker>,
}

struct Chain {
    spill: Spill,
    outage: Outage,
}

pub(super) struct Shared {
    state: Mutex<State>,
    /// A letter came, or the sink is closed.
    news: Condvar,
    /// Nothing is left to do.
    idle: Condvar,
    chain: Mutex<Chain>,
}

/// What the worker does next.
pub(super) enum Next {
    /// Park this letter, then [`settle`](Shared::settle) it.
    Letter(Arc<DeadLetter>),
    /// Bring spilled letters home.
    Import,
    /// Nothing, for ever.
    End,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code of users runs under these locks, and every step leaves a whole state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> StoreError {
    StoreError::new(StoreErrorKind::Closed, "the sink was closed before it took this letter")
}

impl Shared {
    pub(super) fn new(spill: Spill) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            news: Condvar::new(),
            idle: Condvar::new(),
            chain: Mutex::new(Chain { spill, outage: Outage::none(Instant::now()) }),
        })
    }

    pub(super) fn submit(&self, letter: DeadLetter) -> Ticket {
        let (answer, ticket) = Reply::pair(|| Parking::Lost { because: closed() });
        let pending = Pending { letter: Arc::new(letter), answer };
        let mut state = lock(&self.state);
        if state.is_closed {
            drop(state);
            // Nobody is left to do it but the caller.
            self.keep(pending, closed());
            return ticket;
        }
        state.waiting.push_back(pending);
        let waiting = state.waiting.len();
        let mut warn = false;
        if waiting > BOUND {
            state.overflowed += 1;
            warn = !std::mem::replace(&mut state.is_over, true);
        }
        let waker = state.waker.take();
        drop(state);
        self.news.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
        if warn {
            let message = format!("{waiting} letters wait for the sink; it takes them more slowly than they come");
            Notice::warning("sink_behind", "", message).say();
        }
        ticket
    }

    /// How many letters wait, and how many ever came while too many did.
    pub(super) fn lengths(&self) -> (usize, u64) {
        let state = lock(&self.state);
        (state.waiting.len() + usize::from(state.in_flight.is_some()), state.overflowed)
    }

    /// The worker's next work, waited for.
    pub(super) fn next(&self) -> Next {
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = self.take(&mut state) {
                return next;
            }
            let left = lock(&self.chain).outage.next().map(|at| at.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) => self.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.news.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// The worker's next work, awaited. There is no timer: an import becomes due when a letter comes.
    pub(super) fn poll_next(&self, cx: &Context<'_>) -> Poll<Next> {
        let mut state = lock(&self.state);
        if let Some(next) = self.take(&mut state) {
            return Poll::Ready(next);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn take(&self, state: &mut State) -> Option<Next> {
        let (is_down, import_is_due) = {
            let (chain, now) = (lock(&self.chain), Instant::now());
            (chain.outage.is_down(), chain.outage.import_is_due(now) && !state.is_closed)
        };
        // While the sink works, older letters go first; while it does not, a letter is the better probe.
        if import_is_due && !is_down {
            state.is_busy = true;
            return Some(Next::Import);
        }
        if let Some(pending) = state.waiting.pop_front() {
            if state.waiting.len() <= BOUND {
                state.is_over = false;
            }
            let letter = Arc::clone(&pending.letter);
            state.in_flight = Some(pending);
            state.is_busy = true;
            return Some(Next::Letter(letter));
        }
        if state.is_closed {
            // Another process may have the files now.
            lock(&self.chain).spill.release();
            return Some(Next::End);
        }
        state.is_busy = import_is_due;
        import_is_due.then_some(Next::Import)
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }

    /// Why the sink is not to be asked now.
    pub(super) fn is_down(&self) -> Option<StoreError> {
        lock(&self.chain).outage.because(Instant::now())
    }

    /// The letter in flight is parked, or the sink said why not, or was not asked (`because` of [`is_down`](Self::is_down)).
    pub(super) fn settle(&self, outcome: Result<String, StoreError>, was_asked: bool) {
        let pending = lock(&self.state).in_flight.take();
        match outcome {
            Ok(letter_id) => {
                lock(&self.chain).outage.worked(Instant::now());
                // Without a pending letter, closing has spilled it already: it is in both places, which harms nobody.
                if let Some(Pending { answer, .. }) = pending {
                    answer.send(Parking::Parked { letter_id });
                }
            }
            Err(because) => {
                if was_asked {
                    self.failed(&because);
                }
                if let Some(pending) = pending {
                    self.keep(pending, because);
                }
            }
        }
        lock(&self.state).is_busy = false;
        self.idle.notify_all();
    }

    /// The sink said no.
    pub(super) fn failed(&self, because: &StoreError) {
        if super::is_of_the_letter(because) {
            return;
        }
        if lock(&self.chain).outage.failed(because, Instant::now()) {
            let message = format!("letters go to the spill file until the sink works again: {because}");
            Notice::error("sink_down", "", message).say();
        }
    }

    /// The end of an import: whether all of it is home.
    pub(super) fn imported(&self, outcome: Result<bool, StoreError>) {
        match outcome {
            Ok(is_whole) => {
                let (mut chain, now) = (lock(&self.chain), Instant::now());
                chain.outage.worked(now);
                chain.outage.imported(is_whole, now);
            }
            Err(because) => self.failed(&because),
        }
        lock(&self.state).is_busy = false;
        self.idle.notify_all();
    }

    /// The spill files to bring home. A spill that cannot be read is said aloud, and says nothing about the sink.
    pub(super) fn files_to_import(&self) -> Vec<PathBuf> {
        let files = lock(&self.chain).spill.files_to_import();
        files.unwrap_or_else(|error| {
            Notice::error("spill_import_failed", "", error.to_string()).say();
            Vec::new()
        })
    }

    /// The spill file, then stderr.
    fn keep(&self, pending: Pending, because: StoreError) {
        let Pending { letter, answer } = pending;
        let spilled = {
            let mut chain = lock(&self.chain);
            chain.spill.append(&letter).inspect(|_| chain.outage.spilled(Instant::now()))
        };
        answer.send(match spilled {
            Ok(path) => Parking::Spilled { path, because },
            Err(spill) => {
                let both = format!("{because}; then the spill: {spill}");
                // Said without the lock: a listener may ask this sink how much waits.
                lose(&letter, StoreError::new(because.kind(), both))
            }
        });
    }

    /// Takes nothing more from now on.
    pub(super) fn close(&self) {
        let waker = {
            let mut state = lock(&self.state);
            state.is_closed = true;
            state.waker.take()
        };
        self.news.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits until nothing is left, at most `within`. Says whether nothing is.
    pub(super) fn wait_idle(&self, within: Duration) -> bool {
        let end = Instant::now().checked_add(within);
        let mut state = lock(&self.state);
        while !state.waiting.is_empty() || state.is_busy {
            let left = end.map_or(within, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            state = self.idle.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The worker is gone: nothing it had will be settled.
    pub(super) fn end(&self) {
        self.close();
        self.spill_rest();
        lock(&self.chain).spill.release();
        lock(&self.state).is_busy = false;
        self.idle.notify_all();
    }

    /// Spills all that waits, the letter in flight included. Says how many.
    pub(super) fn spill_rest(&self) -> u64 {
        let mut state = lock(&self.state);
        let in_flight = state.in_flight.take();
        let rest: Vec<_> = in_flight.into_iter().chain(state.waiting.drain(..)).collect();
        drop(state);
        let spilled = rest.len() as u64;
        for pending in rest {
            self.keep(pending, closed());
        }
        self.idle.notify_all();
        spilled
    }
}
