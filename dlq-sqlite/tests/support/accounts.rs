//! A small program with every ending a job can have, and the accounts it must balance.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{DeadLetterSink, Parking};
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerKey};

use super::{letter, parkings, spilled, tell, wait};

/// How jobs reach the store.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// All at once: they share transactions.
    Together,
    /// Each waits for the one before.
    OneByOne,
}

fn end(job: usize, key: LedgerKey, store: &SqliteStore) -> &'static str {
    let Ok(Ok(begin)) = store.begin(key.clone(), 3).wait(Duration::from_secs(60)) else {
        // The ledger cannot be asked: the job runs.
        return if job.is_multiple_of(2) { "succeeded" } else { "park" };
    };
    let Begin::Go { token, .. } = begin else { return "refused" };
    match job % 8 {
        0 => {
            drop(store.end(key, token, End::Ok));
            "succeeded"
        }
        1 => {
            drop(store.end(key, token, End::Gone));
            "gone"
        }
        _ => "park",
    }
}

/// Runs so many jobs and tells how each of them ended.
pub(crate) fn run(store: &SqliteStore, jobs: usize, pace: Pace) {
    let mut waiting = Vec::new();
    for job in 0..jobs {
        // Every 16th and the one after it are one key: the later one is refused.
        let key = LedgerKey::new("fetch", format!("{}", if job % 16 == 9 { job - 1 } else { job }));
        let name = format!("{}-{job}", std::process::id());
        match end(job, key, store) {
            "park" => {
                let letter = letter(&name);
                let id = letter.park_id;
                waiting.push((id, store.submit(letter)));
            }
            other => tell(&format!("{other} {name}")),
        }
        if pace == Pace::OneByOne {
            settle(&mut waiting);
        }
    }
    settle(&mut waiting);
}

fn settle(waiting: &mut Vec<(retry_runtime::id::Id, retry_runtime::dead_letter::Ticket)>) {
    for (id, ticket) in waiting.drain(..) {
        match wait(ticket) {
            Parking::Parked { .. } => tell(&format!("parked {id}")),
            Parking::Spilled { .. } => tell(&format!("spilled {id}")),
            other => tell(&format!("lost {id} {other}")),
        }
    }
}

/// What a run told, sorted by ending.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    pub(crate) accepted: usize,
    pub(crate) succeeded: usize,
    pub(crate) gone: usize,
    pub(crate) refused: usize,
    pub(crate) parked: BTreeSet<String>,
    pub(crate) spilled: BTreeSet<String>,
    pub(crate) lost: BTreeSet<String>,
}

impl Accounts {
    pub(crate) fn of(accepted: usize, told: &[String]) -> Self {
        let mut accounts = Self { accepted, ..Self::default() };
        for line in told {
            let mut words = line.split(' ');
            let id = |words: &mut std::str::Split<'_, char>| words.next().unwrap().to_owned();
            match words.next().unwrap() {
                "succeeded" => accounts.succeeded += 1,
                "gone" => accounts.gone += 1,
                "refused" => accounts.refused += 1,
                "parked" => assert!(accounts.parked.insert(id(&mut words))),
                "spilled" => assert!(accounts.spilled.insert(id(&mut words))),
                "lost" => assert!(accounts.lost.insert(id(&mut words))),
                other => panic!("{other}"),
            }
        }
        accounts
    }

    /// 11.1: accepted = succeeded + gone + refused + parked + spilled + lost, and what is said to be somewhere is there.
    pub(crate) fn assert_balanced(&self, path: &Path, spill: &[&Path]) {
        let endings = self.succeeded + self.gone + self.refused + self.parked.len() + self.spilled.len();
        assert_eq!(self.accepted, endings + self.lost.len(), "{self:?}");
        let missing: Vec<_> = self.parked.iter().filter(|id| !parkings(path).contains(*id)).collect();
        assert!(missing.is_empty(), "answered as parked, not in the store: {missing:?}");
        let waiting = spilled(spill);
        let missing: Vec<_> = self.spilled.iter().filter(|id| !waiting.contains(*id)).collect();
        assert!(missing.is_empty(), "answered as spilled, in no spill file: {missing:?}");
    }

    /// With the fault gone, everything spilled comes home, once.
    pub(crate) fn assert_comes_home(&self, path: &Path, spill: &[&Path]) {
        let directories: Vec<PathBuf> = spill.iter().map(|path| (*path).to_owned()).collect();
        let store = SqliteStore::options(path).reserve(false).spill_dirs(directories).open().unwrap();
        assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
        assert!(!store.is_down());
        drop(store);
        let home = parkings(path);
        for id in self.parked.iter().chain(&self.spilled) {
            assert!(home.contains(id), "{id} did not come home");
        }
        let letters: i64 = rusqlite::Connection::open(path)
            .unwrap()
            .query_row("SELECT count(*) FROM letter", [], |row| row.get(0))
            .unwrap();
        assert_eq!(
            usize::try_from(letters).unwrap(),
            self.parked.len() + self.spilled.len(),
            "a letter is there twice"
        );
        assert!(spilled(spill).is_empty());
        super::assert_intact(path);
    }
}
