//! The atomics of a budget: what was ever supplied, and what was ever spent.
//!
//! What is left is `supplied + the floor since the start - spent`, and never more than the capacity. A deposit is one add
//! to `supplied` and needs no clock. Taking is one exchange of `spent`; what had run over the capacity until then counts as
//! spent with it, which gives the same as cutting at each deposit, since nothing can tell the two apart in between.
//!
//! The order of the two loads matters. `spent` is read first: what was supplied since then only adds, so a refusal is
//! right at the moment of the second load, and a grant is right because `spent` did not move until the exchange.
//!
//! Times are nanoseconds of a monotonic clock since any fixed moment, amounts are thousandths of a token. The parent module
//! says which atomics `sync` has: the tests that try every order of execution bring their own.

use super::sync::{AtomicI64, Ordering};

/// No retry was asked for yet: the floor has not begun.
pub(super) const UNSTARTED: i64 = i64::MIN;

/// A balance that threads share without a lock.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) supplied: AtomicI64,
    pub(super) spent: AtomicI64,
    pub(super) started: AtomicI64,
}

/// The numbers of a budget that never change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// What is there at the start.
    pub(super) reserve: i64,
    pub(super) per_second: i64,
    /// What the floor gives in one window.
    pub(super) per_window: i64,
    pub(super) capacity: i64,
}

impl Rates {
    /// What the floor gives in a span of nanoseconds. Counted from the start each time, so that no rounding adds up.
    pub(super) fn floor(&self, nanos: i64) -> i64 {
        let milli = i128::from(self.per_second) * i128::from(nanos) / 1_000_000_000;
        i64::try_from(milli).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// What is left, from what was supplied and spent.
    fn left(&self, supplied: i64, spent: i64) -> i64 {
        let left = supplied.wrapping_sub(spent);
        // More than a window in debt: time went back that far, which only another clock does (a test's). It starts afresh.
        if self.per_window > 0 && left < -self.per_window { self.reserve } else { left.clamp(0, self.capacity) }
    }
}

impl Bucket {
    /// Adds to what was supplied.
    pub(super) fn add(&self, milli: i64) {
        self.supplied.fetch_add(milli, Ordering::Release);
    }

    /// Takes so much, or nothing where less is left.
    pub(super) fn take(&self, rates: &Rates, cost: i64, now: impl Fn() -> i64) -> bool {
        let mut spent = self.spent.load(Ordering::Acquire);
        loop {
            let now = now();
            let supplied = self.supplied(rates, self.start(now), now);
            let left = rates.left(supplied, spent);
            if left < cost {
                return false;
            }
            let after = supplied.wrapping_sub(left - cost);
            match self.spent.compare_exchange_weak(spent, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(moved) => spent = moved,
            }
        }
    }

    /// What is left.
    pub(super) fn available(&self, rates: &Rates, now: i64) -> i64 {
        let spent = self.spent.load(Ordering::Acquire);
        let started = match self.started.load(Ordering::Acquire) {
            UNSTARTED => now,
            started => started,
        };
        rates.left(self.supplied(rates, started, now), spent)
    }

    /// Makes what is left this much. In one exchange, as taking is: a deposit and the retry that it paid for are both before it
    /// or both after it.
    pub(super) fn set(&self, rates: &Rates, left: i64, now: i64) {
        let mut spent = self.spent.load(Ordering::Acquire);
        loop {
            let supplied = self.supplied(rates, self.start(now), now);
            let after = supplied.wrapping_sub(left.clamp(0, rates.capacity));
            match self.spent.compare_exchange_weak(spent, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(moved) => spent = moved,
            }
        }
    }

    fn supplied(&self, rates: &Rates, started: i64, now: i64) -> i64 {
        let deposits = self.supplied.load(Ordering::Acquire);
        deposits.wrapping_add(rates.reserve).wrapping_add(rates.floor(now.wrapping_sub(started)))
    }

    /// When the floor began: now, for the first who asks.
    fn start(&self, now: i64) -> i64 {
        match self.started.compare_exchange(UNSTARTED, now, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => now,
            Err(started) => started,
        }
    }
}
