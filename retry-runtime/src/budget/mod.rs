//! A shared limit on retries, in proportion to what succeeds.

mod bucket;
mod keyed;

use std::fmt;
use std::time::Duration;

use bucket::{Bucket, Rates, Share, UNSTARTED};
pub use keyed::Budgets;
use sync::{AtomicI64, AtomicU64, Ordering};

use crate::clock;

mod sync {
    pub(super) use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
}

/// A token, in the unit that is counted in.
const TOKEN: i64 = 1000;

/// A limit on retries that many calls share: retries may only be a part of the traffic.
///
/// Each call that succeeds at its first attempt adds `ratio` of a token; each retry takes one, before its wait. When the
/// dependency fails for everybody nothing adds tokens any more, and retries stop making it worse: a call that finds no
/// token gives up at once with [`StopReason::BudgetDenied`](crate::StopReason::BudgetDenied) and its own last error. A floor
/// of `min_per_second` tokens flows in besides, so that low traffic is never starved.
///
/// A budget is made to be a `static`, one for each dependency. All its methods are lock-free; a first-try success costs
/// one atomic add, and neither reads the clock nor allocates.
///
/// | setting | default | meaning |
/// |---|---|---|
/// | [`ratio`](Self::ratio) | 0.2 | tokens added by a first-try success |
/// | [`min_per_second`](Self::min_per_second) | 10 | tokens that flow in whatever happens |
/// | [`window`](Self::window) | 10 s | so much of that flow is there at the start, and is saved up while no retry asks for it |
/// | [`capacity`](Self::capacity) | one window's flow, at least 100 | the most tokens kept, those of successes included |
/// | [`costs`](Self::costs) | `timeout` 2, others 1 | tokens that a retry takes, by the failure's class |
///
/// So by default 100 retries at most come at once, then 10 a second and a fifth of what succeeds.
///
/// ```
/// use retry_runtime::Budget;
///
/// static GEMINI: Budget = Budget::new().ratio(0.1).min_per_second(1);
///
/// // in a loop of your own:
/// let mut retries = 0;
/// while let Some(taken) = GEMINI.take("server_error") {
///     // .. wait .. (a wait that is cancelled drops `taken`, which gives it back)
///     taken.spend();
///     retries += 1;
/// }
/// assert_eq!((retries, GEMINI.denied()), (10, 1)); // the flow of ten seconds was there at the start
///
/// for _ in 0..10 {
///     GEMINI.succeeded(); // ten first-try successes pay for one retry
/// }
/// assert!(GEMINI.take("server_error").is_some());
/// ```
pub struct Budget {
    ratio: u32,
    per_second: u32,
    window: Duration,
    capacity: Option<u32>,
    costs: &'static [(&'static str, u32)],
    bucket: Bucket,
    denied: AtomicU64,
}

impl Budget {
    /// The largest ratio: more than ten retries for each success is no limit any more.
    const MAX_RATIO: f64 = 10.0;
    /// The largest floor, a million a second.
    const MAX_PER_SECOND: u32 = 1_000_000;
    /// The longest window, a day.
    const MAX_WINDOW: Duration = Duration::from_secs(86_400);

    /// A budget with the defaults.
    pub const fn new() -> Self {
        Self {
            ratio: 200,
            per_second: 10,
            window: Duration::from_secs(10),
            capacity: None,
            costs: &[("timeout", 2)],
            bucket: Bucket {
                supplied: AtomicI64::new(0),
                spent: AtomicI64::new(0),
                drained: AtomicI64::new(0),
                started: AtomicI64::new(UNSTARTED),
            },
            denied: AtomicU64::new(0),
        }
    }

    /// How many tokens a first-try success adds: 0.2 allows one retry for five successes. Kept to a thousandth; below 0 and
    /// not a number count as 0, above 10 as 10. Default: 0.2.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and 10,000 by the checks before
    pub const fn ratio(mut self, ratio: f64) -> Self {
        self.ratio = if ratio >= Self::MAX_RATIO {
            (Self::MAX_RATIO * 1000.0) as u32
        } else if ratio > 0.0 {
            (ratio * 1000.0 + 0.5) as u32
        } else {
            0
        };
        self
    }

    /// How many tokens flow in each second whatever succeeds or fails; above a million counts as a million. 0: retries live
    /// on successes alone. Default: 10.
    #[must_use]
    pub const fn min_per_second(mut self, tokens: u32) -> Self {
        self.per_second = if tokens > Self::MAX_PER_SECOND { Self::MAX_PER_SECOND } else { tokens };
        self
    }

    /// The window of the floor. Its tokens flow in steadily, `min_per_second` times its seconds in any span of this length,
    /// and what no retry asks for is kept for one window: after a rest of whatever length the floor alone has that many
    /// tokens, as at the start, and goes on flowing. (A span that begins with such a rest's savings sees both.) Where a
    /// window's flow pays for no retry, one retry's cost is saved up. Longer than a day counts as a day. Default: 10 s.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = if window.as_nanos() > Self::MAX_WINDOW.as_nanos() { Self::MAX_WINDOW } else { window };
        self
    }

    /// The most tokens kept; what comes on top is lost. Large services raise it to the retries that one short disturbance
    /// may cost. Default: what the floor gives in one window, and at least 100.
    #[must_use]
    pub const fn capacity(mut self, tokens: u32) -> Self {
        self.capacity = Some(tokens);
        self
    }

    /// What a retry takes by the class of the failure before it, in tokens; a class that is not named takes 1, and none takes
    /// less. Replaces the default, `&[("timeout", 2)]`: a timeout has kept the dependency busy for longest.
    ///
    /// Where one retry takes more than the whole capacity, it takes the capacity.
    #[must_use]
    pub const fn costs(mut self, costs: &'static [(&'static str, u32)]) -> Self {
        self.costs = costs;
        self
    }

    /// A call succeeded at its first attempt: adds `ratio` of a token.
    #[inline]
    pub fn succeeded(&self) {
        self.bucket.add(i64::from(self.ratio));
    }

    /// Takes what a retry costs after a failure of this class; `None` when there is not enough. To be asked before the
    /// wait: dropped, what was taken is given back, so a wait that is cancelled costs nothing.
    #[must_use = "dropping it gives the tokens back"]
    pub fn take(&self, class: &str) -> Option<Taken<'_>> {
        let cost = self.cost(class);
        let share = self.bucket.take(&self.rates(), cost, now);
        if share.is_none() {
            self.denied.fetch_add(1, Ordering::Relaxed);
        }
        share.map(|share| Taken { budget: self, share })
    }

    /// How many tokens there are, for metrics. Reads the clock.
    #[allow(clippy::cast_precision_loss)] // thousandths of at most four billion
    pub fn tokens(&self) -> f64 {
        self.milli_tokens() as f64 / 1000.0
    }

    /// The same in thousandths.
    pub fn milli_tokens(&self) -> u64 {
        self.bucket.available(&self.rates(), TOKEN, now()).unsigned_abs()
    }

    /// How many retries were denied so far.
    pub fn denied(&self) -> u64 {
        self.denied.load(Ordering::Relaxed)
    }

    /// The state as plain numbers, for a program that is gone before its window is over: it keeps them, and the next one goes
    /// on from there. [`keep_in`](Self::keep_in) does so in a store.
    pub fn state(&self) -> BudgetState {
        BudgetState { milli_tokens: self.milli_tokens(), unix_millis: clock::unix_millis() }
    }

    /// Goes on from a kept state: its tokens, and what the floor gave since then by the wall clock, one window's flow of both at
    /// most being the floor's. A state from the future counts as of now. Meant for the start, before calls share the budget.
    ///
    /// ```
    /// use retry_runtime::{Budget, BudgetState};
    ///
    /// let before = Budget::new().min_per_second(0).ratio(1.0);
    /// before.succeeded();
    /// let BudgetState { milli_tokens, unix_millis } = before.state();
    ///
    /// let after = Budget::new().min_per_second(0).ratio(1.0);
    /// after.restore(BudgetState { milli_tokens, unix_millis });
    /// assert_eq!(after.milli_tokens(), 1000);
    /// ```
    pub fn restore(&self, state: BudgetState) {
        let away = Duration::from_millis(clock::unix_millis().saturating_sub(state.unix_millis));
        let rates = self.rates();
        let gained = rates.floor(i64::try_from(away.as_nanos()).unwrap_or(i64::MAX));
        let kept = i64::try_from(state.milli_tokens).unwrap_or(i64::MAX);
        let of_floor = kept.min(rates.per_window);
        let gained = gained.min(rates.per_window - of_floor);
        self.bucket.set(&rates, kept.saturating_add(gained), now());
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // at most a million a second for a day
    const fn rates(&self) -> Rates {
        let per_second = self.per_second as i64 * TOKEN;
        let per_window = (per_second as i128 * self.window.as_millis() as i128 / 1000) as i64;
        let capacity = match self.capacity {
            Some(tokens) => tokens as i64 * TOKEN,
            None if per_window > 100 * TOKEN => per_window,
            None => 100 * TOKEN,
        };
        let reserve = if per_window < capacity { per_window } else { capacity };
        Rates { reserve, per_second, per_window, capacity }
    }

    fn cost(&self, class: &str) -> i64 {
        let tokens = self.costs.iter().find(|(name, _)| *name == class).map_or(1, |(_, tokens)| *tokens);
        (i64::from(tokens) * TOKEN).min(self.rates().capacity).max(TOKEN)
    }

    /// What a retry takes after a failure of this class, in thousandths of a token.
    pub(crate) fn cost_of(&self, class: &str) -> u64 {
        self.cost(class).unsigned_abs()
    }

    /// Whether it is in the state of a new one.
    pub(crate) fn is_fresh(&self) -> bool {
        self.bucket.available(&self.rates(), 0, now()) == self.rates().reserve
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("milli_tokens", &self.milli_tokens())
            .field("denied", &self.denied())
            .finish_non_exhaustive()
    }
}

/// What a retry took from a [`Budget`]. Dropped, it is given back; [`spend`](Self::spend) it when the wait is over.
#[derive(Debug)]
#[must_use = "dropping it gives the tokens back"]
pub struct Taken<'b> {
    budget: &'b Budget,
    share: Share,
}

impl<'b> Taken<'b> {
    /// The wait is over, the retry runs: what was taken is spent.
    pub fn spend(self) -> Spent<'b> {
        let spent = Spent { budget: self.budget, share: self.share };
        std::mem::forget(self); // owns nothing but the duty to give back
        spent
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.budget.bucket.give_back(self.share);
    }
}

/// What a retry has spent.
#[derive(Debug)]
pub struct Spent<'b> {
    budget: &'b Budget,
    share: Share,
}

impl Spent<'_> {
    /// The retry succeeded: what it took goes back. What earlier retries of the same call took stays spent, for they put
    /// load on the dependency and brought nothing.
    pub fn refund(self) {
        self.budget.bucket.give_back(self.share);
    }

    /// How much it was, in thousandths of a token.
    pub const fn milli_tokens(&self) -> u64 {
        self.share.sum().unsigned_abs()
    }
}

/// The state of a [`Budget`] in plain numbers: see [`Budget::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetState {
    /// Thousandths of a token.
    pub milli_tokens: u64,
    /// When that was, in milliseconds since 1970 in UTC.
    pub unix_millis: u64,
}

/// Nanoseconds since the first call of this in the process. Below zero on another clock that is behind (a paused one).
fn now() -> i64 {
    clock::since_anchor()
}

// One for all threads.
const _: fn() = || {
    fn shareable<T: Send + Sync + 'static>() {}
    shareable::<Budget>();
};
