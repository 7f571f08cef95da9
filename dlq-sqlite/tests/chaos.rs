//! Four processes on one file, killed at any moment, with faults that come and go (the runtime's chaos suite).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::StoreClock;
use retry_runtime::error::StoreError;
use retry_runtime::testing::chaos::{self, Fault, Harness, Plan, Report, Workers};
use rusqlite::Connection;
use support::SmallDisk;

/// A store on a small disk of its own, where this process may mount one; letters are spilled beside it.
#[derive(Default)]
struct OneFile {
    disk: Mutex<Option<SmallDisk>>,
    lock: Mutex<Option<Connection>>,
}

fn database(place: &Path) -> PathBuf {
    place.join("disk/jobs.db")
}

impl Harness for OneFile {
    type Store = SqliteStore;

    fn workers(&self) -> Workers {
        Workers::Processes
    }

    fn prepare(&self, place: &Path) -> Result<(), String> {
        std::fs::create_dir(place.join("spill")).map_err(|error| error.to_string())?;
        *self.disk.lock().unwrap() = SmallDisk::mount(&place.join("disk"), "64m");
        Ok(())
    }

    fn open(&self, place: &Path, clock: StoreClock) -> Result<SqliteStore, StoreError> {
        let options = SqliteStore::options(database(place)).clock(clock).reserve(false);
        Ok(options.spill_dirs([place.join("spill")]).busy_limit(Duration::from_millis(200)).open()?)
    }

    fn can(&self, fault: Fault, _place: &Path) -> bool {
        match fault {
            Fault::LockedFile => true,
            Fault::FullDisk => self.disk.lock().unwrap().is_some(),
            _ => false,
        }
    }

    fn begin(&self, fault: Fault, place: &Path) -> Result<(), String> {
        match fault {
            Fault::LockedFile => {
                let other = Connection::open(database(place)).unwrap();
                other.busy_timeout(Duration::from_secs(30)).unwrap();
                other.execute_batch("BEGIN IMMEDIATE").map_err(|error| error.to_string())?;
                *self.lock.lock().unwrap() = Some(other);
            }
            Fault::FullDisk => fill(&filler(place)),
            _ => return Err("unknown here".to_owned()),
        }
        Ok(())
    }

    fn end(&self, fault: Fault, place: &Path) -> Result<(), String> {
        match fault {
            Fault::LockedFile => drop(self.lock.lock().unwrap().take()),
            Fault::FullDisk => std::fs::remove_file(filler(place)).map_err(|error| error.to_string())?,
            _ => {}
        }
        Ok(())
    }

    fn settle(&self, _place: &Path, store: &SqliteStore) -> Result<(), String> {
        store.settle().wait(Duration::from_secs(60)).map_err(|_| "the store does not settle".to_owned())?;
        if store.is_down() { Err("the store is down".to_owned()) } else { Ok(()) }
    }

    fn is_elsewhere(&self, place: &Path, id: &str) -> bool {
        support::spilled(&[&place.join("spill")]).contains(id)
    }

    fn check(&self, place: &Path) -> Result<(), String> {
        support::assert_intact(&database(place));
        Ok(())
    }

    fn clean(&self, _place: &Path) {
        drop(self.disk.lock().unwrap().take());
    }
}

fn filler(place: &Path) -> PathBuf {
    place.join("disk/filler")
}

/// Until nothing more fits.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    for size in [1 << 20, 1 << 12] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

fn soak() -> bool {
    std::env::var_os("SOAK").is_some()
}

fn show(report: &Report) {
    // Past the harness's capture: the seed is to be seen.
    writeln!(std::io::stderr().lock(), "{report}").unwrap();
}

// 11.1, S1: 4 processes, random kills, locked file, full disk, clock jumps, handlers that outlive their lease
#[test]
fn nothing_is_lost_and_nothing_happens_twice() {
    let plan = Plan::new("nothing_is_lost_and_nothing_happens_twice").kills(if soak() { 1_000 } else { 200 }).faults([
        Fault::OutlivedLease,
        Fault::ClockJumps,
        Fault::LockedFile,
        Fault::FullDisk,
    ]);
    let report = chaos::run(&OneFile::default(), &plan);
    show(&report);
    report.assert_passed();
}
