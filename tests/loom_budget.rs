//! The atomics of a budget in every order of execution that the memory model allows, and what such a test catches.
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

/// Lives on successes alone.
const fn rates(capacity: i64) -> Rates {
    Rates { reserve: 0, per_second: 0, per_window: 0, capacity }
}

/// What the tests need of a budget, so that faulty ones can be put in its place.
trait Balance: Send + Sync + 'static {
    fn new() -> Self;
    fn add(&self, milli: i64);
    fn take(&self, rates: &Rates, cost: i64) -> bool;
    fn left(&self, rates: &Rates) -> i64;
}

impl Balance for Bucket {
    fn new() -> Self {
        let zero = || AtomicI64::new(0);
        Self { supplied: zero(), spent: zero(), drained: zero(), started: AtomicI64::new(UNSTARTED) }
    }
    fn add(&self, milli: i64) {
        Self::add(self, milli);
    }
    fn take(&self, rates: &Rates, cost: i64) -> bool {
        Self::take(self, rates, cost, || 0).is_some()
    }
    fn left(&self, rates: &Rates) -> i64 {
        self.available(rates, 1000, 0)
    }
}

/// Two threads ask for the only token: one gets it.
fn one_token_is_granted_once<B: Balance>() {
    loom::model(|| {
        const ONE: Rates = rates(9000);
        let balance = Arc::new(B::new());
        balance.add(1000);
        let other = Arc::clone(&balance);
        let there = thread::spawn(move || other.take(&ONE, 1000));
        let here = balance.take(&ONE, 1000);
        assert!(here ^ there.join().unwrap());
        assert_eq!(balance.left(&ONE), 0);
    });
}

/// At no moment is less than a token left for either thread: none is refused. (The one that deposits takes what it brought.)
fn nobody_is_refused_what_is_there<B: Balance>() {
    loom::model(|| {
        const ONE: Rates = rates(9000);
        let balance = Arc::new(B::new());
        balance.add(1000);
        let other = Arc::clone(&balance);
        let there = thread::spawn(move || {
            other.add(1000);
            other.take(&ONE, 1000)
        });
        assert!(balance.take(&ONE, 1000));
        assert!(there.join().unwrap());
        assert_eq!(balance.left(&ONE), 0);
    });
}

/// Deposits beside each other, beside a retry that is given back: nothing is lost.
fn nothing_is_lost<B: Balance>() {
    loom::model(|| {
        const NONE: Rates = rates(9000);
        let balance = Arc::new(B::new());
        balance.add(1000);
        let other = Arc::clone(&balance);
        let there = thread::spawn(move || other.add(200));
        if balance.take(&NONE, 1000) {
            balance.add(1000);
        }
        there.join().unwrap();
        assert_eq!(balance.left(&NONE), 1200);
    });
}

/// What came on top of the capacity is lost, also where a retry follows. A deposit beside the retry counts when the retry was
/// first, and is lost when it was not.
fn the_capacity_holds<B: Balance>() {
    loom::model(|| {
        const FULL: Rates = rates(1000);
        let balance = Arc::new(B::new());
        balance.add(1700);
        let other = Arc::clone(&balance);
        let there = thread::spawn(move || other.add(500));
        assert!(balance.take(&FULL, 1000));
        there.join().unwrap();
        let left = balance.left(&FULL);
        assert!(left == 0 || left == 500, "{left}");
        assert!(!balance.take(&FULL, 1000));
    });
}

const TESTS: &[(&str, Models)] = &[
    ("one token is granted once", (one_token_is_granted_once::<Bucket>, &[one_token_is_granted_once::<ForgetsRivals>])),
    (
        "nobody is refused what is there",
        (nobody_is_refused_what_is_there::<Bucket>, &[nobody_is_refused_what_is_there::<ReadsInTheWrongOrder>]),
    ),
    ("nothing is lost", (nothing_is_lost::<Bucket>, &[nothing_is_lost::<LosesDeposits>])),
    ("the capacity holds", (the_capacity_holds::<Bucket>, &[the_capacity_holds::<HasNoCapacity>])),
];

/// The test of the library's own, and of the faulty ones that it must not pass.
type Models = (fn(), &'static [fn()]);

// 7.3: linearizable
#[test]
fn every_order_of_execution_is_one_that_could_have_been_one_after_the_other() {
    for (_, (sound, _)) in TESTS {
        sound();
    }
}

#[test]
fn each_of_these_faults_is_caught() {
    for (name, (_, faulty)) in TESTS {
        for model in *faulty {
            assert!(catch_unwind(AssertUnwindSafe(model)).is_err(), "the test that {name} passes with a faulty budget");
        }
    }
}

macro_rules! faulty {
    ($(#[$doc:meta])* $name:ident, add($self_add:ident, $milli:ident) $add:block, take($self:ident, $rates:ident, $cost:ident) $take:block) => {
        $(#[$doc])*
        struct $name(Bucket);
        impl Balance for $name {
            fn new() -> Self {
                Self(Balance::new())
            }
            fn add(&$self_add, $milli: i64) $add
            fn take(&$self, $rates: &Rates, $cost: i64) -> bool $take
            fn left(&self, rates: &Rates) -> i64 {
                self.0.available(rates, 1000, 0)
            }
        }
    };
}

faulty! {
    /// Stores what it computed, whatever another thread has done meanwhile.
    ForgetsRivals,
    add(self, milli) { self.0.add(milli) },
    take(self, rates, cost) {
        let spent = self.0.spent.load(Ordering::SeqCst);
        let enough = self.0.available(rates, 1000, 0) >= cost;
        if enough {
            self.0.spent.store(spent + cost, Ordering::SeqCst);
        }
        enough
    }
}

faulty! {
    /// Reads what was supplied, then what was spent.
    ReadsInTheWrongOrder,
    add(self, milli) { self.0.add(milli) },
    take(self, _rates, cost) {
        loop {
            let supplied = self.0.supplied.load(Ordering::SeqCst);
            let spent = self.0.spent.load(Ordering::SeqCst);
            if supplied - spent < cost {
                return false;
            }
            if self.0.spent.compare_exchange(spent, spent + cost, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return true;
            }
        }
    }
}

faulty! {
    /// Adds in two steps.
    LosesDeposits,
    add(self, milli) {
        let supplied = self.0.supplied.load(Ordering::SeqCst);
        self.0.supplied.store(supplied + milli, Ordering::SeqCst);
    },
    take(self, rates, cost) { Balance::take(&self.0, rates, cost) }
}

faulty! {
    /// Cuts at the capacity only what it shows.
    HasNoCapacity,
    add(self, milli) { self.0.add(milli) },
    take(self, rates, cost) {
        let enough = self.0.available(rates, 1000, 0) >= cost;
        enough && self.0.spent.fetch_add(cost, Ordering::SeqCst) >= 0
    }
}
