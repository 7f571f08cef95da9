//! Chaos for an operation of a program: it fails, dawdles, hangs and panics at given rates.
//!
//! (For a store of your own there is [`store_chaos`](super::store_chaos), which is another thing: it kills workers and
//! judges what is left in the store.)

use std::fmt;
#[cfg(feature = "tokio")]
use std::future::{Future, pending};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::store_chaos::Dice;
use super::waits::virtual_time;
#[cfg(feature = "tokio")]
use crate::__private::yield_once;

/// Makes an operation fail, dawdle, hang and panic at given rates, the same way in each run of a seed.
///
/// It stands around the operation, inside of what retries it. Rates lie between 0 and 1; each call is struck by each kind
/// by itself, in this order:
///
/// | kind | what happens |
/// |---|---|
/// | [`panics`](Self::panics) | the call panics, and the operation does not run |
/// | [`hangs`](Self::hangs) | the call never ends: only a time limit, `cancel` or a drop ends it (a blocking one takes an hour) |
/// | [`latency`](Self::latency) | the call takes longer, before the operation runs |
/// | [`errors`](Self::errors) | the call fails, and the operation does not run |
/// | [`lost_answers`](Self::lost_answers) | the operation runs, and its answer is replaced by an error; let it be one that is classified `outcome_unknown` |
///
/// What strikes a call depends on the seed and on the number of the call, on nothing else: neither on threads nor on the
/// other rates. Waiting goes by tokio's clock, so that a paused one takes no time, and by [`no_waits`](super::no_waits).
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::testing::{Chaos, no_waits};
/// use retry_runtime::{Classify, retry};
///
/// #[derive(Debug, Classify)]
/// #[classify(retryable)]
/// struct Busy;
///
/// #[retry(max_retries = 9)]
/// async fn fetch(chaos: &Chaos<Busy>) -> Result<u32, Busy> {
///     chaos.run(|| async { Ok(200) }).await // in a test: around the client
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let _quick = no_waits();
/// let chaos = Chaos::seeded(7).errors(0.3, || Busy).latency(0.5, Duration::from_millis(5)..=Duration::from_secs(2));
/// for _ in 0..100 {
///     assert!(fetch(&chaos).await.is_ok());
/// }
/// let tally = chaos.tally();
/// assert!(tally.calls > 120 && tally.errors == tally.calls - 100, "{tally}");
/// # }
/// ```
pub struct Chaos<E> {
    seed: u64,
    panics: Rate,
    hangs: Rate,
    latency: (Rate, RangeInclusive<Duration>),
    errors: Strikes<E>,
    lost_answers: Strikes<E>,
    counts: Counts,
}

/// A kind of error that strikes.
struct Strikes<E> {
    rate: Rate,
    make: Option<Make<E>>,
    count: AtomicU64,
}

type Make<E> = Box<dyn Fn() -> E + Send + Sync>;

/// In billionths.
#[derive(Clone, Copy, Default)]
struct Rate(u64);

const WHOLE: u64 = 1_000_000_000;

/// How long a blocking operation hangs.
const BLOCKING_HANG: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    panics: AtomicU64,
    hangs: AtomicU64,
    delayed: AtomicU64,
}

/// What strikes one call.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // each strikes by itself
struct Fate {
    panics: bool,
    hangs: bool,
    latency: Option<Duration>,
    fails: bool,
    loses_answer: bool,
}

impl<E> Chaos<E> {
    /// Chaos that repeats with its seed; nothing strikes until a rate is given.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            panics: Rate(0),
            hangs: Rate(0),
            latency: (Rate(0), Duration::ZERO..=Duration::ZERO),
            errors: Strikes::never(),
            lost_answers: Strikes::never(),
            counts: Counts::default(),
        }
    }

    /// This part of the calls fails with an error made so, and the operation does not run.
    #[must_use]
    pub fn errors(mut self, rate: f64, make: impl Fn() -> E + Send + Sync + 'static) -> Self {
        self.errors = Strikes { rate: Rate::of(rate), make: Some(Box::new(make)), ..Strikes::never() };
        self
    }

    /// This part of the calls runs the operation and then fails with an error made so, as where an answer is lost: what is
    /// not idempotent must not be repeated.
    #[must_use]
    pub fn lost_answers(mut self, rate: f64, make: impl Fn() -> E + Send + Sync + 'static) -> Self {
        self.lost_answers = Strikes { rate: Rate::of(rate), make: Some(Box::new(make)), ..Strikes::never() };
        self
    }

    /// This part of the calls takes so much longer, anything of the range.
    #[must_use]
    pub fn latency(mut self, rate: f64, range: RangeInclusive<Duration>) -> Self {
        self.latency = (Rate::of(rate), range);
        self
    }

    /// This part of the calls never ends.
    #[must_use]
    pub fn hangs(mut self, rate: f64) -> Self {
        self.hangs = Rate::of(rate);
        self
    }

    /// This part of the calls panics, with a message that names seed and call.
    #[must_use]
    pub fn panics(mut self, rate: f64) -> Self {
        self.panics = Rate::of(rate);
        self
    }

    /// Runs an async operation, or what strikes it instead.
    ///
    /// # Panics
    /// On purpose, at the rate of [`panics`](Self::panics).
    ///
    /// # Errors
    /// The operation's own, and those that strike it.
    #[cfg(feature = "tokio")]
    pub async fn run<T, F>(&self, operation: impl FnOnce() -> F) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let fate = self.next();
        if fate.hangs {
            pending::<()>().await;
        }
        if let Some(latency) = fate.latency {
            if virtual_time(latency) {
                yield_once().await;
            } else {
                tokio::time::sleep(latency).await;
            }
        }
        if let Some(error) = self.errors.error(fate.fails) {
            return Err(error);
        }
        let outcome = operation().await;
        self.answer(&fate, outcome)
    }

    /// Runs a blocking operation, or what strikes it instead. A hang takes an hour.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_blocking<T>(&self, operation: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let fate = self.next();
        let hang = fate.hangs.then_some(BLOCKING_HANG);
        for time in hang.into_iter().chain(fate.latency) {
            if !virtual_time(time) {
                thread::sleep(time);
            }
        }
        if let Some(error) = self.errors.error(fate.fails) {
            return Err(error);
        }
        let outcome = operation();
        self.answer(&fate, outcome)
    }

    /// What has struck so far.
    pub fn tally(&self) -> ChaosTally {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { calls, panics, hangs, delayed } = &self.counts;
        ChaosTally {
            calls: read(calls),
            panics: read(panics),
            hangs: read(hangs),
            delayed: read(delayed),
            errors: read(&self.errors.count),
            lost_answers: read(&self.lost_answers.count),
        }
    }

    /// The fate of the next call. A panic strikes here.
    fn next(&self) -> Fate {
        let call = self.counts.calls.fetch_add(1, Ordering::Relaxed);
        let fate = self.fate(call);
        let count = |strikes: bool, counter: &AtomicU64| {
            if strikes {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        };
        count(fate.panics, &self.counts.panics);
        assert!(!fate.panics, "chaos of seed {}: call {} panics on purpose", self.seed, call + 1);
        count(fate.hangs, &self.counts.hangs);
        count(fate.latency.is_some(), &self.counts.delayed);
        fate
    }

    /// Everything is drawn for every call, so that one rate changes nothing of another.
    fn fate(&self, call: u64) -> Fate {
        let mut dice = Dice::part(self.seed, call);
        let panics = self.panics.strikes(&mut dice);
        let hangs = self.hangs.strikes(&mut dice);
        let is_late = self.latency.0.strikes(&mut dice);
        let (shortest, longest) = (*self.latency.1.start(), *self.latency.1.end());
        let span = u64::try_from(longest.saturating_sub(shortest).as_nanos()).unwrap_or(u64::MAX);
        let latency = shortest.saturating_add(Duration::from_nanos(dice.below(span.saturating_add(1))));
        let fails = self.errors.rate.strikes(&mut dice);
        let loses_answer = self.lost_answers.rate.strikes(&mut dice);
        Fate { panics, hangs, latency: is_late.then_some(latency), fails, loses_answer }
    }

    fn answer<T>(&self, fate: &Fate, outcome: Result<T, E>) -> Result<T, E> {
        self.lost_answers.error(fate.loses_answer).map_or(outcome, Err)
    }
}

impl<E> Strikes<E> {
    const fn never() -> Self {
        Self { rate: Rate(0), make: None, count: AtomicU64::new(0) }
    }

    /// Makes the error where it strikes.
    fn error(&self, strikes: bool) -> Option<E> {
        let make = self.make.as_ref().filter(|_| strikes)?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Some(make())
    }
}

impl Rate {
    /// Below 0 and not a number count as 0, above 1 as 1.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // between 0 and 1
    fn of(rate: f64) -> Self {
        if rate >= 1.0 {
            Self(WHOLE)
        } else if rate > 0.0 {
            Self((rate * WHOLE as f64) as u64)
        } else {
            Self(0)
        }
    }

    fn strikes(self, dice: &mut Dice) -> bool {
        dice.below(WHOLE) < self.0
    }
}

impl<E> fmt::Debug for Chaos<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chaos").field("seed", &self.seed).field("tally", &self.tally()).finish_non_exhaustive()
    }
}

/// What a [`Chaos`] did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChaosTally {
    /// How often it was called.
    pub calls: u64,
    /// Calls that panicked.
    pub panics: u64,
    /// Calls that hung.
    pub hangs: u64,
    /// Calls that took longer.
    pub delayed: u64,
    /// Calls that failed without the operation.
    pub errors: u64,
    /// Calls whose answer was lost.
    pub lost_answers: u64,
}

impl fmt::Display for ChaosTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, panics, hangs, delayed, errors, lost_answers } = self;
        write!(
            f,
            "{calls} calls: {errors} errors, {lost_answers} lost answers, {delayed} delayed, {hangs} hangs, {panics} panics"
        )
    }
}
