//! A circuit breaker: stops asking a dependency that fails, and asks a little before it asks again.

mod machine;
mod window;

use std::error::Error;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use machine::{Machine, Outcome, Phase, Settings, Ticket};
use window::Window;

use crate::clock;
use crate::verdict::{Disposition, Verdict};

/// Refuses calls to a dependency that fails for most of them, until probes have shown that it works again.
///
/// It is closed while things are well. When of the calls in a sliding `window`, at least `min_calls`, a part of
/// `failure_ratio` or more has failed, it opens: for `open_for` it refuses every call, which then ends with
/// [`StopReason::BreakerOpen`](crate::StopReason::BreakerOpen) before its attempt. After that it is half-open: a few probes
/// are admitted. When all `probes` have succeeded it closes; at the first that fails it opens again, for twice as long as
/// before, at most `max_open`.
///
/// # What counts
///
/// | outcome | counts as |
/// |---|---|
/// | success | success |
/// | retryable or unknown failure, timeout, value that `retry_ok` rejects | failure |
/// | permanent or gone failure, panic, cancelled or dropped future, classifier that panics | nothing: the permit goes back |
///
/// A permanent failure is the caller's mistake and says nothing about the dependency. Each change of the state begins a new
/// generation, and what was admitted in an earlier one changes nothing any more, however late it ends. A probe that never
/// ends holds its place for `probe_lease` and no longer.
///
/// | setting | default |
/// |---|---|
/// | [`failure_ratio`](Self::failure_ratio) | 0.5 |
/// | [`min_calls`](Self::min_calls) | 20 |
/// | [`window`](Self::window) | 30 s |
/// | [`open_for`](Self::open_for) | 10 s |
/// | [`max_open`](Self::max_open) | 5 min |
/// | [`probes`](Self::probes) | 3 |
/// | [`probe_lease`](Self::probe_lease) | 60 s |
///
/// It is made to be a `static`, one for each dependency.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::{BreakerPhase, CircuitBreaker};
///
/// static GEMINI: CircuitBreaker = CircuitBreaker::new().min_calls(2).open_for(Duration::from_secs(30));
///
/// // in a loop of your own:
/// for _ in 0..2 {
///     let permit = GEMINI.permit().expect("closed");
///     // .. call .. (dropping the permit without a word gives no verdict)
///     permit.failed();
/// }
/// assert_eq!(GEMINI.phase(), BreakerPhase::Open);
/// let open = GEMINI.permit().unwrap_err();
/// assert!(open.retry_in() > Duration::from_secs(29));
/// ```
pub struct CircuitBreaker {
    failure_ratio: u32,
    min_calls: u32,
    window: Duration,
    open_for: Duration,
    max_open: Duration,
    probes: u32,
    probe_lease: Duration,
    machine: Mutex<Machine>,
}

impl CircuitBreaker {
    /// A closed breaker with the defaults.
    pub const fn new() -> Self {
        Self {
            failure_ratio: 500,
            min_calls: 20,
            window: Duration::from_secs(30),
            open_for: Duration::from_secs(10),
            max_open: Duration::from_secs(300),
            probes: 3,
            probe_lease: Duration::from_secs(60),
            machine: Mutex::new(Machine::new()),
        }
    }

    /// The part of the calls in the window whose failure opens it, from 0.001 to 1; what lies outside counts as the nearer
    /// of the two, not a number as 1. Default: 0.5.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 1 and 1,000 by the checks before
    pub const fn failure_ratio(mut self, ratio: f64) -> Self {
        self.failure_ratio = if ratio < 0.001 {
            1
        } else if ratio < 1.0 {
            (ratio * 1000.0 + 0.5) as u32
        } else {
            1000
        };
        self
    }

    /// How many calls the window must hold before it can open. Default: 20.
    #[must_use]
    pub const fn min_calls(mut self, calls: u32) -> Self {
        self.min_calls = calls;
        self
    }

    /// How far back calls count. It slides in ten steps. Default: 30 s.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// How long it stays open at first; twice as long each time that a probe fails. Default: 10 s.
    #[must_use]
    pub const fn open_for(mut self, time: Duration) -> Self {
        self.open_for = time;
        self
    }

    /// The longest time it stays open; never less than `open_for`. Default: 5 min.
    #[must_use]
    pub const fn max_open(mut self, time: Duration) -> Self {
        self.max_open = time;
        self
    }

    /// How many probes a half-open breaker admits, all of which must succeed; 0 counts as 1. Default: 3.
    #[must_use]
    pub const fn probes(mut self, probes: u32) -> Self {
        self.probes = if probes == 0 { 1 } else { probes };
        self
    }

    /// How long a probe may take before another takes its place and its own outcome no longer counts. A wait before the
    /// probe's attempt comes on top. Longer than the slowest call is right. Default: 60 s.
    #[must_use]
    pub const fn probe_lease(mut self, time: Duration) -> Self {
        self.probe_lease = time;
        self
    }

    /// Admits a call, or says that it is refused.
    ///
    /// # Errors
    /// [`BreakerOpen`] while it is open, and while it is half-open and all probes are under way.
    pub fn permit(&self) -> Result<Permit<'_>, BreakerOpen> {
        self.permit_after(Duration::ZERO)
    }

    /// Admits a call that will start after a wait: a probe's lease begins when the wait is over.
    ///
    /// # Errors
    /// As [`permit`](Self::permit).
    pub fn permit_after(&self, wait: Duration) -> Result<Permit<'_>, BreakerOpen> {
        let mut machine = self.lock();
        match machine.admit(&self.settings(), clock::since_anchor(), nanos(wait)) {
            Ok(ticket) => Ok(Permit { breaker: self, ticket: Some(ticket) }),
            Err(left) => Err(BreakerOpen { retry_in: Duration::from_nanos(left.unsigned_abs()) }),
        }
    }

    /// What it does now. An open one whose time is over stays open until somebody asks to be admitted.
    pub fn phase(&self) -> BreakerPhase {
        match self.lock().phase {
            Phase::Closed(_) => BreakerPhase::Closed,
            Phase::Open { .. } => BreakerPhase::Open,
            Phase::HalfOpen { .. } => BreakerPhase::HalfOpen,
        }
    }

    /// How many calls were refused so far.
    pub fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// The state as plain data, for a program that is gone before the dependency is back. [`keep_in`](Self::keep_in) keeps it
    /// in a store.
    pub fn state(&self) -> BreakerState {
        let now_millis = clock::unix_millis();
        let mut machine = self.lock();
        let now = clock::since_anchor();
        let mut state = BreakerState {
            phase: BreakerPhase::Closed,
            openings: machine.openings,
            calls: 0,
            failures: 0,
            open_until_unix_millis: 0,
            unix_millis: now_millis,
        };
        match &mut machine.phase {
            Phase::Closed(window) => (state.calls, state.failures) = window.sums(nanos(self.window), now),
            Phase::Open { since, lasts } => {
                let left = lasts.saturating_sub(now.saturating_sub(*since)).max(0).unsigned_abs();
                state.phase = BreakerPhase::Open;
                state.open_until_unix_millis = now_millis.saturating_add(left.div_ceil(1_000_000));
            }
            Phase::HalfOpen { .. } => {
                state.phase = BreakerPhase::HalfOpen;
                state.open_until_unix_millis = now_millis;
            }
        }
        state
    }

    /// Goes on from a kept state. Calls that are under way change nothing any more. A closed one keeps its calls where they
    /// are not older than the window; an open one opens until the time it said, at most for `max_open`; the probes of a
    /// half-open one are gone with their program, so the next to ask begins them again.
    ///
    /// ```
    /// use retry_runtime::{BreakerPhase, CircuitBreaker};
    ///
    /// let before = CircuitBreaker::new().min_calls(1);
    /// before.permit().expect("closed").failed();
    ///
    /// let after = CircuitBreaker::new().min_calls(1);
    /// after.restore(before.state());
    /// assert_eq!(after.phase(), BreakerPhase::Open);
    /// ```
    pub fn restore(&self, state: BreakerState) {
        let now_millis = clock::unix_millis();
        let settings = self.settings();
        let mut machine = self.lock();
        let now = clock::since_anchor();
        match state.phase {
            BreakerPhase::Closed => {
                let mut window = Window::new();
                let age = nanos(Duration::from_millis(now_millis.saturating_sub(state.unix_millis)));
                if age < settings.window {
                    window.add(settings.window, now.saturating_sub(age), state.calls, state.failures);
                }
                machine.close(window);
            }
            BreakerPhase::Open | BreakerPhase::HalfOpen => {
                let left = state.open_until_unix_millis.saturating_sub(now_millis);
                let left = nanos(Duration::from_millis(left)).min(settings.max_open.max(settings.open_for));
                machine.open_again(state.openings, now, left);
            }
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            failure_ratio: self.failure_ratio,
            min_calls: self.min_calls,
            window: nanos(self.window),
            open_for: nanos(self.open_for),
            max_open: nanos(self.max_open),
            probes: self.probes,
            probe_lease: nanos(self.probe_lease),
        }
    }

    /// No user's code runs under this lock. The clock is read under it, so that time never goes back inside.
    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, ticket: Option<Ticket>, outcome: Outcome) {
        if let Some(ticket) = ticket {
            let mut machine = self.lock();
            machine.end(&self.settings(), clock::since_anchor(), ticket, outcome);
        }
    }
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker").field("phase", &self.phase()).finish_non_exhaustive()
    }
}

/// A call that a [`CircuitBreaker`] has admitted. Dropped without a word it gives no verdict: a call that is cancelled, or
/// that panics, says nothing about the dependency.
#[derive(Debug)]
#[must_use = "dropping it gives no verdict"]
pub struct Permit<'b> {
    breaker: &'b CircuitBreaker,
    ticket: Option<Ticket>,
}

impl Permit<'_> {
    /// The call succeeded.
    pub fn succeeded(mut self) {
        self.breaker.end(self.ticket.take(), Outcome::Success);
    }

    /// The call failed in a way that speaks against the dependency.
    pub fn failed(mut self) {
        self.breaker.end(self.ticket.take(), Outcome::Failure);
    }

    /// The call failed, and a classifier said what it means: retryable and unknown count as failures, permanent and gone
    /// give no verdict.
    pub fn judged(self, verdict: &Verdict) {
        match verdict.disposition {
            Disposition::Retryable | Disposition::Unknown => self.failed(),
            Disposition::Permanent | Disposition::Gone => drop(self),
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.breaker.end(self.ticket.take(), Outcome::NoVerdict);
    }
}

/// A [`CircuitBreaker`] refused a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerOpen {
    retry_in: Duration,
}

impl BreakerOpen {
    /// How long it stays open; zero where it is half-open and its probes are under way.
    pub const fn retry_in(&self) -> Duration {
        self.retry_in
    }
}

impl fmt::Display for BreakerOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.retry_in.is_zero() {
            f.write_str("breaker half-open, and its probes are under way")
        } else {
            write!(f, "breaker open for another {:.1?}", self.retry_in)
        }
    }
}

impl Error for BreakerOpen {}

/// The three states of a [`CircuitBreaker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerPhase {
    /// Calls are admitted and counted.
    Closed,
    /// Calls are refused.
    Open,
    /// A few probes are admitted.
    HalfOpen,
}

impl BreakerPhase {
    /// The stable text form: `closed`, `open` or `half_open`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }

    /// The phase of a stable text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Closed, Self::Open, Self::HalfOpen].into_iter().find(|phase| phase.as_str() == text)
    }
}

/// The state of a [`CircuitBreaker`] in plain data: see [`CircuitBreaker::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerState {
    /// What it did.
    pub phase: BreakerPhase,
    /// How often it opened since it was last closed.
    pub openings: u32,
    /// The calls in its window, of a closed one.
    pub calls: u32,
    /// The failed ones among them.
    pub failures: u32,
    /// Until when it stays open, in milliseconds since 1970 in UTC; 0 of a closed one.
    pub open_until_unix_millis: u64,
    /// When the state was taken, in the same unit.
    pub unix_millis: u64,
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

// One for all threads.
const _: fn() = || {
    fn shareable<T: Send + Sync + 'static>() {}
    shareable::<CircuitBreaker>();
};
