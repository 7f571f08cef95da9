//! The atomics of a budget: what was ever supplied, and what was ever spent, of successes and of the floor.
//!
//! There are two balances. What successes bring is `supplied - spent`. What the floor has left is `reserve + the flow since the
//! start - drained`, and never more than one window's flow: what it gives is not saved up for longer. Together they are
//! never more than the capacity; where they would be, the floor's part stays and the other is cut.
//!
//! A deposit is one add to `supplied` and needs no clock. Taking is one exchange of `drained`, since the floor's part perishes,
//! and one of `spent` for what is missing, and for what had run over the capacity until then. Cutting at each retry gives the
//! same as cutting at each deposit, since nothing can tell the two apart in between.
//!
//! The order of the loads matters. What was spent is read before what was supplied, which only grows; a refusal holds where
//! the floor was not asked meanwhile, and is looked at again where it was. A grant is right because neither balance moved
//! until its exchange. One that takes a part of each, and finds the second taken by a rival, gives the first back and looks
//! again: until then that part is held, as it is by a retry whose wait is cancelled.
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
    /// What was taken of the floor, or has lapsed.
    pub(super) drained: AtomicI64,
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

/// What a retry took, of each balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) of_floor: i64,
    pub(super) of_successes: i64,
}

impl Share {
    pub(super) const fn sum(self) -> i64 {
        self.of_floor.saturating_add(self.of_successes)
    }
}

impl Rates {
    /// What the floor gives in a span of nanoseconds. Counted from the start each time, so that no rounding adds up.
    pub(super) fn floor(&self, nanos: i64) -> i64 {
        let milli = i128::from(self.per_second) * i128::from(nanos) / 1_000_000_000;
        i64::try_from(milli).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// What is left of the floor for a retry of this cost. A window whose flow pays for no retry at all saves up for one.
    fn of_floor(&self, flowed: i64, drained: i64, cost: i64) -> i64 {
        let left = flowed.wrapping_sub(drained);
        let most = if self.per_second > 0 || self.reserve > 0 { self.per_window.max(cost) } else { 0 };
        // More than a window in debt: time went back that far, which only another clock does (a test's). It starts afresh.
        let left = if self.per_window > 0 && left < -self.per_window { self.reserve } else { left };
        left.clamp(0, most.min(self.capacity))
    }

    /// What is left of successes, beside what is left of the floor.
    fn of_successes(&self, supplied: i64, spent: i64, of_floor: i64) -> i64 {
        supplied.wrapping_sub(spent).clamp(0, self.capacity - of_floor)
    }
}

impl Bucket {
    /// Adds to what was supplied.
    pub(super) fn add(&self, milli: i64) {
        self.supplied.fetch_add(milli, Ordering::Release);
    }

    /// What a retry took comes back, to where it was. What the floor had meanwhile in its place lapses.
    pub(super) fn give_back(&self, share: Share) {
        if share.of_floor > 0 {
            self.drained.fetch_sub(share.of_floor, Ordering::AcqRel);
        }
        if share.of_successes > 0 {
            self.add(share.of_successes);
        }
    }

    /// Takes so much, or nothing where less is left.
    pub(super) fn take(&self, rates: &Rates, cost: i64, now: impl Fn() -> i64) -> Option<Share> {
        loop {
            let drained = self.drained.load(Ordering::Acquire);
            let spent = self.spent.load(Ordering::Acquire);
            let supplied = self.supplied.load(Ordering::Acquire);
            let now = now();
            let flowed = Self::flowed(rates, self.start(now), now);
            let floor = rates.of_floor(flowed, drained, cost);
            let successes = rates.of_successes(supplied, spent, floor);
            if floor + successes < cost {
                if self.drained.load(Ordering::Acquire) == drained {
                    return None;
                }
                continue;
            }
            let of_floor = floor.min(cost);
            let share = Share { of_floor, of_successes: cost - of_floor };
            if of_floor > 0 && !exchange(&self.drained, drained, flowed.wrapping_sub(floor - of_floor)) {
                continue;
            }
            if self.spend(rates, floor, share.of_successes, spent) {
                return Some(share);
            }
            self.give_back(Share { of_successes: 0, ..share });
        }
    }

    /// Takes so much of what successes brought, beside what was left of the floor, and cuts what is above the capacity.
    fn spend(&self, rates: &Rates, floor: i64, cost: i64, mut spent: i64) -> bool {
        loop {
            let supplied = self.supplied.load(Ordering::Acquire);
            let left = rates.of_successes(supplied, spent, floor);
            if left < cost {
                return false;
            }
            let after = supplied.wrapping_sub(left - cost);
            if after == spent || exchange(&self.spent, spent, after) {
                return true;
            }
            spent = self.spent.load(Ordering::Acquire);
        }
    }

    /// What is left for a retry of this cost.
    pub(super) fn available(&self, rates: &Rates, cost: i64, now: i64) -> i64 {
        let drained = self.drained.load(Ordering::Acquire);
        let spent = self.spent.load(Ordering::Acquire);
        let supplied = self.supplied.load(Ordering::Acquire);
        let started = match self.started.load(Ordering::Acquire) {
            UNSTARTED => now,
            started => started,
        };
        let floor = rates.of_floor(Self::flowed(rates, started, now), drained, cost);
        floor + rates.of_successes(supplied, spent, floor)
    }

    /// Makes what is left this much: one window's flow at most is the floor's, the rest is of successes. A retry beside it
    /// is before it or after it in each of the two.
    pub(super) fn set(&self, rates: &Rates, left: i64, now: i64) {
        let flowed = Self::flowed(rates, self.start(now), now);
        let left = left.clamp(0, rates.capacity);
        let floor = if rates.per_second > 0 { left.min(rates.per_window) } else { 0 };
        self.drained.swap(flowed.wrapping_sub(floor), Ordering::AcqRel);
        let mut spent = self.spent.load(Ordering::Acquire);
        loop {
            let supplied = self.supplied.load(Ordering::Acquire);
            if exchange(&self.spent, spent, supplied.wrapping_sub(left - floor)) {
                return;
            }
            spent = self.spent.load(Ordering::Acquire);
        }
    }

    /// What the floor has ever given, with what was there at the start.
    fn flowed(rates: &Rates, started: i64, now: i64) -> i64 {
        rates.reserve.wrapping_add(rates.floor(now.wrapping_sub(started)))
    }

    /// When the floor began: now, for the first who asks.
    fn start(&self, now: i64) -> i64 {
        match self.started.compare_exchange(UNSTARTED, now, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => now,
            Err(started) => started,
        }
    }
}

fn exchange(balance: &AtomicI64, found: i64, after: i64) -> bool {
    balance.compare_exchange_weak(found, after, Ordering::AcqRel, Ordering::Acquire).is_ok()
}
