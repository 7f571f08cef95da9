//! The floor of a budget, and a balance that is set, in every order of execution that the memory model allows; and what such
//! a test catches. Deposits and retries are in `loom_budget`.
//!
//! The file of the library is compiled here once more, with loom's atomics.
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::Arc;
use loom::thread;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicI64, Ordering};
}

#[allow(dead_code)] // the library uses the rest
#[path = "../retry-runtime/src/budget/bucket.rs"]
mod bucket;

use bucket::{Bucket, Rates, UNSTARTED};
use sync::{AtomicI64, Ordering};

/// In nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// A token a second flows in, and nine may be saved up; so many are there at the start.
const fn flow(reserve: i64) -> Rates {
    Rates { reserve, per_second: 1000, per_window: 9000, capacity: 9000 }
}

/// What the tests need of a budget, so that faulty ones can be put in its place.
trait Balance: Send + Sync + Sized + 'static {
    fn of(bucket: Bucket) -> Self;
    fn bucket(&self) -> &Bucket;
    fn new() -> Self {
        let zero = || AtomicI64::new(0);
        Self::of(Bucket { supplied: zero(), spent: zero(), drained: zero(), started: AtomicI64::new(UNSTARTED) })
    }
    fn take(&self, rates: &Rates, cost: i64, now: i64) -> bool {
        self.bucket().take(rates, cost, || now).is_some()
    }
    fn set(&self, rates: &Rates, left: i64, now: i64) {
        self.bucket().set(rates, left, now);
    }
    fn left(&self, rates: &Rates, now: i64) -> i64 {
        self.bucket().available(rates, 1000, now)
    }
    /// When the floor began.
    fn started(&self) -> i64 {
        self.bucket().started.load(Ordering::SeqCst)
    }
}

impl Balance for Bucket {
    fn of(bucket: Bucket) -> Self {
        bucket
    }
    fn bucket(&self) -> &Bucket {
        self
    }
}

/// Whoever asks first, the floor begins once: it was never counted from two moments.
fn the_floor_begins_once<B: Balance>() {
    loom::model(|| {
        const FLOW: Rates = flow(0);
        let balance = Arc::new(B::new());
        let other = Arc::clone(&balance);
        let there = thread::spawn(move || {
            assert!(!other.take(&FLOW, 5000, SECOND));
            other.left(&FLOW, 3 * SECOND)
        });
        assert!(!balance.take(&FLOW, 5000, 0));
        let seen = balance.left(&FLOW, 3 * SECOND);
        assert!(seen == 3000 || seen == 2000, "{seen}");
        assert_eq!(seen, there.join().unwrap());
        assert_eq!(seen, balance.left(&FLOW, 3 * SECOND));
    });
}

/// What is granted and what is left is what there was: the reserve, and the floor from its beginning.
fn reserve_and_floor_are_granted_once<B: Balance>() {
    loom::model(|| {
        const FLOW: Rates = flow(1000);
        let balance = Arc::new(B::new());
        let other = Arc::clone(&balance);
        let there = thread::spawn(move || i64::from(other.take(&FLOW, 1000, SECOND)));
        let here = i64::from(balance.take(&FLOW, 1000, 0));
        let granted = 1000 * (here + there.join().unwrap());
        let supplied = 1000 + (SECOND - balance.started()) / (SECOND / 1000);
        assert_eq!(granted + balance.left(&FLOW, SECOND), supplied, "{granted} granted");
    });
}

/// The clock goes on beside a thread that asks: what flowed in is granted to one of them.
fn what_flows_in_meanwhile_is_granted_once<B: Balance>() {
    loom::model(|| {
        const FLOW: Rates = flow(0);
        let balance = Arc::new(B::new());
        assert!(!balance.take(&FLOW, 1000, 0));
        let clock = Arc::new(AtomicI64::new(0));
        let (other, goes_on) = (Arc::clone(&balance), Arc::clone(&clock));
        let there = thread::spawn(move || {
            goes_on.store(SECOND, Ordering::Release);
            other.take(&FLOW, 1000, SECOND)
        });
        let here = balance.take(&FLOW, 1000, clock.load(Ordering::Acquire));
        assert!(here ^ there.join().unwrap());
        assert_eq!(balance.left(&FLOW, SECOND), 0);
    });
}

/// A kept balance is restored beside a retry: the retry was before it, or after it; there was a token at each moment. The
/// balance has a part of the floor's and one of successes.
fn a_balance_is_set_in_one_step<B: Balance>() {
    loom::model(|| {
        const FLOW: Rates = Rates { per_window: 2000, ..flow(1000) };
        let balance = Arc::new(B::new());
        let other = Arc::clone(&balance);
        let there = thread::spawn(move || other.set(&FLOW, 3000, 0));
        assert!(balance.take(&FLOW, 1000, 0));
        there.join().unwrap();
        let left = balance.left(&FLOW, 0);
        assert!(left == 3000 || left == 2000, "{left}");
    });
}

/// Set beside a thread that deposits and takes: each of the two counts, or both are of before.
fn what_comes_after_a_set_counts<B: Balance>() {
    loom::model(|| {
        const FLOW: Rates = flow(0);
        let balance = Arc::new(B::new());
        let other = Arc::clone(&balance);
        let there = thread::spawn(move || {
            other.bucket().add(1000);
            other.take(&FLOW, 1000, 0)
        });
        balance.set(&FLOW, 1000, 0);
        assert!(there.join().unwrap());
        let left = balance.left(&FLOW, 0);
        assert!(left == 1000 || left == 0, "{left}");
    });
}

/// What is set is what was there at that time: the floor since then comes on top, whenever it began.
fn the_floor_flows_on_after_a_set<B: Balance>() {
    loom::model(|| {
        const FLOW: Rates = flow(0);
        let balance = Arc::new(B::new());
        let other = Arc::clone(&balance);
        let there = thread::spawn(move || other.take(&FLOW, 1000, SECOND));
        balance.set(&FLOW, 0, 0);
        let granted = there.join().unwrap();
        let left = balance.left(&FLOW, SECOND);
        // a retry that was granted came after it, or before it and is forgotten
        assert!(left == 1000 || (granted && left == 0), "{left}, granted: {granted}");
    });
}

/// Half a token of the floor's and half a one of successes make a token: one thread gets it.
fn a_token_of_two_halves_is_granted_once<B: Balance>() {
    loom::model(|| {
        const HALVES: Rates = Rates { per_second: 0, ..flow(500) };
        let balance = Arc::new(B::new());
        balance.bucket().add(500);
        let other = Arc::clone(&balance);
        let there = thread::spawn(move || other.take(&HALVES, 1000, 0));
        let here = balance.take(&HALVES, 1000, 0);
        assert!(here ^ there.join().unwrap());
        assert_eq!(balance.left(&HALVES, 0), 0);
    });
}

/// A test, with the budget that it is about.
type Model = fn();

/// The test of the library's own, and of the faulty one that it must not pass.
const TESTS: &[(&str, Model, Model)] = &[
    ("the floor begins once", the_floor_begins_once::<Bucket>, the_floor_begins_once::<BeginsTwice>),
    (
        "reserve and floor are granted once",
        reserve_and_floor_are_granted_once::<Bucket>,
        reserve_and_floor_are_granted_once::<ForgetsRivals>,
    ),
    (
        "what flows in meanwhile is granted once",
        what_flows_in_meanwhile_is_granted_once::<Bucket>,
        what_flows_in_meanwhile_is_granted_once::<ForgetsRivals>,
    ),
    (
        "a balance is set in one step",
        a_balance_is_set_in_one_step::<Bucket>,
        a_balance_is_set_in_one_step::<SetsInTwoSteps>,
    ),
    (
        "a token of two halves is granted once",
        a_token_of_two_halves_is_granted_once::<Bucket>,
        a_token_of_two_halves_is_granted_once::<TakesHalfOfOne>,
    ),
    (
        "what comes after a set counts",
        what_comes_after_a_set_counts::<Bucket>,
        what_comes_after_a_set_counts::<SetsWithoutLooking>,
    ),
    (
        "the floor flows on after a set",
        the_floor_flows_on_after_a_set::<Bucket>,
        the_floor_flows_on_after_a_set::<SetsWithoutTheFloor>,
    ),
];

// 7.1, 7.3: linearizable
#[test]
fn every_order_of_execution_is_one_that_could_have_been_one_after_the_other() {
    for (_, sound, _) in TESTS {
        sound();
    }
}

#[test]
fn each_of_these_faults_is_caught() {
    for (name, _, faulty) in TESTS {
        assert!(catch_unwind(AssertUnwindSafe(faulty)).is_err(), "the test that {name} passes with a faulty budget");
    }
}

macro_rules! faulty {
    ($(#[$doc:meta])* $name:ident, fn $($method:tt)*) => {
        $(#[$doc])*
        struct $name(Bucket);
        impl Balance for $name {
            fn of(bucket: Bucket) -> Self {
                Self(bucket)
            }
            fn bucket(&self) -> &Bucket {
                &self.0
            }
            fn $($method)*
        }
    };
}

faulty! {
    /// Looks whether the floor has begun, then lets it begin.
    BeginsTwice,
    fn take(&self, rates: &Rates, cost: i64, now: i64) -> bool {
        if self.0.started.load(Ordering::SeqCst) == UNSTARTED {
            self.0.started.store(now, Ordering::SeqCst);
        }
        self.0.take(rates, cost, || now).is_some()
    }
}

faulty! {
    /// Stores what it computed, whatever another thread has done meanwhile.
    ForgetsRivals,
    fn take(&self, rates: &Rates, cost: i64, now: i64) -> bool {
        // lets the floor begin, and takes nothing
        assert!(self.0.take(rates, 0, || now).is_some());
        let drained = self.0.drained.load(Ordering::SeqCst);
        let enough = self.0.available(rates, 1000, now) >= cost;
        if enough {
            self.0.drained.store(drained + cost, Ordering::SeqCst);
        }
        enough
    }
}

faulty! {
    /// Takes the halves one after the other, and keeps the first.
    TakesHalfOfOne,
    fn take(&self, rates: &Rates, cost: i64, now: i64) -> bool {
        self.0.take(rates, cost / 2, || now).is_some() && self.0.take(rates, cost / 2, || now).is_some()
    }
}

faulty! {
    /// Empties it first.
    SetsInTwoSteps,
    fn set(&self, rates: &Rates, left: i64, now: i64) {
        self.0.set(rates, 0, now);
        self.0.drained.fetch_sub(left, Ordering::SeqCst);
    }
}

faulty! {
    /// Overwrites what was spent since it looked at what was supplied.
    SetsWithoutLooking,
    fn set(&self, rates: &Rates, left: i64, now: i64) {
        assert!(self.0.take(rates, 0, || now).is_some());
        let supplied = self.0.supplied.load(Ordering::SeqCst);
        self.0.drained.swap(rates.reserve - left, Ordering::SeqCst);
        self.0.spent.swap(supplied, Ordering::SeqCst);
    }
}

faulty! {
    /// Counts as spent what flowed in, or will have.
    SetsWithoutTheFloor,
    fn set(&self, rates: &Rates, left: i64, now: i64) {
        assert!(self.0.take(rates, 0, || now).is_some());
        self.0.drained.swap(rates.reserve - left, Ordering::SeqCst);
    }
}
