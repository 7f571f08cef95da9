//! Chaos for stores: workers park, replay and die, faults come and go, and a judge who stands outside says whether anything
//! was lost or happened twice.
//!
//! A worker tells what it does before it does it, and what the store answered afterwards, in a file of its own: a worker that
//! is killed has told everything up to that moment. At the end the judge holds these files against the store:
//!
//! - every accepted parking is in the store, once, or accounted for elsewhere: none is lost;
//! - each replay ended once, by the result that was sent or by a crash after its lease; late results are recorded and
//!   changed nothing; nothing was recovered twice without a new failure in between;
//! - two leases after the last kill nothing is stuck;
//! - attempts, replays and crashes are what was reported; lists, counts, groups and the summary agree.
//!
//! # For your own store
//!
//! ```
//! use std::path::Path;
//! use retry_runtime::dead_letter::{MemoryStore, StoreClock};
//! use retry_runtime::error::StoreError;
//! use retry_runtime::testing::store_chaos::{self, Harness, Plan};
//!
//! struct InMemory;
//!
//! impl Harness for InMemory {
//!     type Store = MemoryStore;
//!
//!     fn open(&self, _place: &Path, clock: StoreClock) -> Result<MemoryStore, StoreError> {
//!         Ok(MemoryStore::with_clock(clock))
//!     }
//! }
//!
//! let report = store_chaos::run(&InMemory, &Plan::new("in_memory").kills(20));
//! println!("{report}"); // the seed, the counts, and what was skipped
//! report.assert_passed();
//! ```
//!
//! A store that several processes share returns [`Workers::Processes`]: then each worker is the calling test itself,
//! started again as a process, and ends by SIGKILL. Give the plan the test's name, and do nothing before [`run`] that a
//! worker must not do. [`Harness`] lists the faults that need the store's help; what it cannot inflict is printed as skipped.
//!
//! A failed run prints its seed: `CHAOS_SEED=7 cargo test the_test` makes the same choices again, which repeats the run
//! exactly where workers are [tasks](Workers::Tasks), and about where they are processes.

mod audit;
mod dice;
mod evidence;
mod harness;
mod judge;
mod plan;
mod processes;
mod report;
mod tasks;
mod trial;
mod witness;
mod work;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use dice::Dice;
pub use harness::{Harness, Workers};
pub use plan::{Fault, Plan};
pub use report::Report;

/// Runs the plan and judges the store.
///
/// In a worker process this does not return, but from a run of another name, with an empty report.
pub fn run<H: Harness>(harness: &H, plan: &Plan) -> Report {
    let mut report = Report::new(plan);
    if let Some(life) = processes::this_life() {
        if life.is_of(plan) {
            life.live(harness, plan);
        }
        return report;
    }
    let place = fresh_place(plan);
    let result = std::fs::create_dir_all(&place)
        .map_err(|error| format!("no place at `{}`: {error}", place.display()))
        .and_then(|()| harness.prepare(&place))
        .map(|()| report.skipped = skipped(harness, plan, &place))
        .and_then(|()| match harness.workers() {
            Workers::Tasks => tasks::run(harness, plan, &place, &mut report),
            Workers::Processes => processes::run(harness, plan, &place, &mut report),
        })
        .and_then(|()| harness.check(&place));
    report.broken.extend(result.err());
    harness.clean(&place);
    if report.passed() {
        // What cannot be removed is in the system's directory for such things.
        let _removed = std::fs::remove_dir_all(&place);
    } else {
        report.kept = Some(place);
    }
    report
}

/// The faults of the plan that nobody can bring about here.
fn skipped<H: Harness>(harness: &H, plan: &Plan, place: &Path) -> Vec<Fault> {
    plan.faults.iter().copied().filter(|fault| !fault.is_of_workers() && !harness.can(*fault, place)).collect()
}

/// A directory of this run alone.
fn fresh_place(plan: &Plan) -> PathBuf {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let name = plan.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    std::env::temp_dir().join(format!("chaos-{name}-{}-{run}", std::process::id()))
}
