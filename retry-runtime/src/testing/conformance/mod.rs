//! The rules of sinks, stores, ledgers and counters, as checks for whoever writes one.
//!
//! Each check is named, carries the number of the rule it proves, and gets a fresh store on a clock that stands still.
//! The code before a name (`D13`, `S1`, `B1.6`) is the number of that rule in this project's own description of stores; you
//! need not look it up, for the check's name says the rule.
//!
//! No asynchronous runtime is needed; a store whose futures need one is checked inside that runtime's context.
//!
//! ```
//! use retry_runtime::dead_letter::MemoryStore;
//! use retry_runtime::testing::conformance;
//!
//! conformance::store(MemoryStore::with_clock).assert_passed();
//! conformance::audit(MemoryStore::with_clock).assert_passed();
//! conformance::operations(MemoryStore::with_clock).assert_passed();
//! conformance::ledger(MemoryStore::with_clock).assert_passed();
//! conformance::counters(MemoryStore::with_clock).assert_passed();
//! conformance::journal(|clock| {
//!     let store = MemoryStore::with_clock(clock);
//!     (store.another(), store)
//! })
//! .assert_passed();
//! ```

mod admin;
mod agreement;
mod agreement_operations;
mod audit;
mod books;
mod bounded;
mod counters;
mod doctor;
mod groups;
mod hand;
mod history;
mod journal;
mod ledger;
mod lifecycle;
mod model;
mod operations;
mod operations_run;
mod oversight;
mod overview;
mod park;
mod portable;
mod read;
mod redact;
mod replay;
mod report;
mod sink;
mod support;
mod thresholds;

use std::sync::Arc;

use crate::counters::{DailyCounters, Thresholds};
use crate::dead_letter::{
    BulkOperations, Checkup, DeadLetterSink, DeadLetterStore, Doctor, Finding, JobJournal, Oversight, Overview,
    StoreAdmin, StoreClock,
};
use crate::ledger::{AttemptLedger, LedgerBooks};

pub use report::{Outcome, Report};
use support::{Bench, SinkBench, run};

/// Checks a sink alone: that it answers, keeps, and takes a letter sent again for the same one. `make` gives a fresh sink.
pub fn sink<S: DeadLetterSink>(mut make: impl FnMut() -> S) -> Report {
    run(sink::checks(), || SinkBench { sink: make(), count: None })
}

/// Checks a sink alone, and by `count` that it keeps each letter once.
pub fn sink_counting<S: DeadLetterSink>(mut make: impl FnMut() -> S, count: impl Fn(&S) -> u64) -> Report {
    run(sink::checks(), || SinkBench { sink: make(), count: Some(&count) })
}

/// Checks a store, its sink included. `make` gives a fresh, empty store on the clock.
pub fn store<S: DeadLetterStore>(mut make: impl FnMut(StoreClock) -> S) -> Report {
    let mut report = sink_counting(
        || make(StoreClock::system()),
        |store| support::done(store.count(crate::dead_letter::Filter::all())).unwrap_or(u64::MAX),
    );
    for checks in [
        park::checks(),
        replay::checks(),
        lifecycle::checks(),
        read::checks(),
        bounded::checks(),
        agreement::checks(),
        model::checks(),
    ] {
        report.extend(run(checks, || Bench::new(&mut make)));
    }
    report.extend(letters(make));
    report
}

/// Checks bulk operations. `make` gives a fresh, empty store on the clock.
pub fn operations<S: BulkOperations>(mut make: impl FnMut(StoreClock) -> S) -> Report {
    let mut report = run(operations::checks(), || Bench::new(&mut make));
    report.extend(run(operations_run::checks(), || Bench::new(&mut make)));
    report.extend(run(agreement_operations::checks(), || Bench::new(&mut make)));
    report
}

/// Checks that list, count and groups mean the letters that [`Filter::matches`](crate::dead_letter::Filter::matches) means,
/// for random letters and filters by this seed. (One seed is a part of [`store`]; a property test gives others.)
///
/// # Errors
/// What differed.
pub fn filters<S: DeadLetterStore>(make: impl FnOnce(StoreClock) -> S, seed: u64) -> Result<(), String> {
    agreement::filters_agree(&Bench::new(make), seed)
}

/// Checks that also the plan and the frozen members of an operation are the letters that its
/// [filter](crate::dead_letter::OperationRequest::members) means, and with them list and count, for random letters, filters
/// and verbs by this seed. (One seed is a part of [`operations`].)
///
/// # Errors
/// What differed.
pub fn filters_of_operations<S: BulkOperations>(make: impl FnOnce(StoreClock) -> S, seed: u64) -> Result<(), String> {
    agreement_operations::filters_agree(&Bench::new(make), seed)
}

/// Checks only what operators do to one letter, the audit of all changes, and the history: a part of [`store`].
pub fn letters<S: DeadLetterStore>(mut make: impl FnMut(StoreClock) -> S) -> Report {
    let mut report = Report::of(Vec::new());
    for checks in [hand::checks(), audit::checks(), history::checks(), redact::checks()] {
        report.extend(run(checks, || Bench::new(&mut make)));
    }
    report
}

/// Checks that a store which is a ledger too writes down what operators do to it.
pub fn audit<S: DeadLetterStore + AttemptLedger>(mut make: impl FnMut(StoreClock) -> S) -> Report {
    run(audit::ledger_checks(), || Bench::new(&mut make))
}

/// Checks a store's groups of failures. `make` gives a fresh, empty store on the clock.
pub fn groups<S: crate::dead_letter::FailureGroups>(mut make: impl FnMut(StoreClock) -> S) -> Report {
    run(groups::checks(), || Bench::new(&mut make))
}

/// Checks what a store says of itself as a whole. `make` gives a fresh, empty store on the clock.
pub fn overview<S: DeadLetterStore + Overview>(mut make: impl FnMut(StoreClock) -> S) -> Report {
    run(overview::checks(), || Bench::new(&mut make))
}

/// Checks that a store writes down what those do who look after it. `make` gives a fresh, empty store on the clock.
pub fn oversight<S: DeadLetterStore + Oversight>(mut make: impl FnMut(StoreClock) -> S) -> Report {
    run(oversight::checks(), || Bench::new(&mut make))
}

/// Checks an attempt ledger. `make` gives a fresh, empty ledger on the clock.
pub fn ledger<L: AttemptLedger>(mut make: impl FnMut(StoreClock) -> L) -> Report {
    run(ledger::checks(), || Bench::new(&mut make))
}

/// Checks a journal. `make` gives two stores over the same letters, as two processes have them; dropping one is the orderly
/// end of its process.
pub fn journal<S: JobJournal + DeadLetterStore>(mut make: impl FnMut(StoreClock) -> (S, S)) -> Report {
    run(journal::checks(), || journal::TwoProcesses::new(&mut make))
}

/// Checks daily counters. `make` gives fresh, empty counters on the clock.
pub fn counters<C: DailyCounters>(mut make: impl FnMut(StoreClock) -> C) -> Report {
    run(counters::checks(), || Bench::new(&mut make))
}

/// Checks a ledger's pages and counts. `make` gives a fresh, empty ledger on the clock.
pub fn books<L: LedgerBooks>(mut make: impl FnMut(StoreClock) -> L) -> Report {
    run(books::checks(), || Bench::new(&mut make))
}

/// Checks thresholds of daily counters. `make` gives fresh, empty counters on the clock.
pub fn thresholds<C: Thresholds>(mut make: impl FnMut(StoreClock) -> C) -> Report {
    run(thresholds::checks(), || Bench::new(&mut make))
}

/// Checks what operators do to a whole store. `make` gives a fresh, empty store on the clock.
pub fn admin<S: DeadLetterStore + StoreAdmin + 'static>(mut make: impl FnMut(StoreClock) -> S) -> Report {
    admin_by(|clock| {
        let store = Arc::new(make(clock));
        (Arc::clone(&store), store)
    })
}

/// The same for an administration that is not the store itself: `make` gives both.
pub fn admin_by<S: DeadLetterStore, A: StoreAdmin + 'static>(mut make: impl FnMut(StoreClock) -> (S, A)) -> Report {
    let mut report = run(admin::checks(), || admin::AdminBench::new(&mut make));
    report.extend(run(portable::checks(), || admin::AdminBench::new(&mut make)));
    report
}

/// Checks a store's examinations. `make` gives a fresh, empty store on the clock.
pub fn doctor<S: DeadLetterStore + Doctor>(make: impl FnMut(StoreClock) -> S) -> Report {
    doctor_by(make, |store, checkup| support::done(store.doctor(checkup)))
}

/// The same for a doctor that is not the store itself: `examine` gives its findings, or says what failed.
pub fn doctor_by<S: DeadLetterStore>(
    mut make: impl FnMut(StoreClock) -> S,
    examine: impl Fn(&S, Checkup) -> Result<Vec<Finding>, String>,
) -> Report {
    run(doctor::checks(), || doctor::DoctorBench { bench: Bench::new(&mut make), examine: &examine })
}
