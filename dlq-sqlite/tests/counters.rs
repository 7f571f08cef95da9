//! Counts are summed up in memory and written once an interval, and nothing of that is silent.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use dlq_sqlite::SqliteStore;
use retry_runtime::counters::{DailyCounters, Day, Thresholds};
use retry_runtime::dead_letter::{Actor, ManualClock};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::ledger::{AttemptLedger, LedgerKey};
use retry_runtime::observe::set_listener;
use retry_runtime::reply::Reply;
use rusqlite::Connection;
use support::{tell, told};

const HOUR: Duration = Duration::from_secs(3_600);

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn answer<T>(reply: Reply<T>) -> T {
    reply.wait(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no answer in a minute"))
}

/// A store that writes counts only when it is asked to, or closed.
fn open(path: &Path) -> SqliteStore {
    SqliteStore::options(path)
        .flush_counters_every(HOUR)
        .busy_limit(Duration::from_millis(100))
        .reserve(false)
        .open()
        .unwrap()
}

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    (directory, path)
}

/// What the file says, to a program that knows nothing of this crate.
fn in_the_file(path: &Path) -> BTreeMap<(String, String), i64> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare("SELECT day, counter, value FROM daily_stats").unwrap();
    let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn total(path: &Path) -> i64 {
    in_the_file(path).values().sum()
}

fn seen(store: &SqliteStore) -> u64 {
    block(store.day("archive".into(), store.today())).unwrap().values().sum()
}

// B3.5: ten thousand additions are one row, written once
#[test]
fn many_counts_are_one_write() {
    let (_directory, path) = fresh();
    let store = open(&path);
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "CREATE TABLE written(n); CREATE TRIGGER i AFTER INSERT ON daily BEGIN INSERT INTO written VALUES(1); END;
             CREATE TRIGGER u AFTER UPDATE ON daily BEGIN INSERT INTO written VALUES(1); END",
        )
        .unwrap();
    for _ in 0..10_000 {
        drop(store.add("archive", "bytes", 3));
    }
    assert_eq!((total(&path), seen(&store)), (0, 30_000), "not written, and seen all the same");
    assert!(answer(store.flush()).is_ok());
    assert_eq!((total(&path), seen(&store)), (30_000, 30_000));
    let writes: i64 =
        Connection::open(&path).unwrap().query_row("SELECT count(*) FROM written", [], |row| row.get(0)).unwrap();
    assert_eq!(writes, 1);
}

// B3.5: by itself, within the interval; nobody asks for it
#[test]
fn counts_are_written_within_the_interval() {
    let (_directory, path) = fresh();
    let store =
        SqliteStore::options(&path).flush_counters_every(Duration::from_millis(20)).reserve(false).open().unwrap();
    assert!(answer(store.add("archive", "n", 7)).is_ok());
    assert_eq!(total(&path), 7);
    // At once, where that is wanted.
    let (_directory, path) = fresh();
    let store = SqliteStore::options(&path).flush_counters_every(Duration::ZERO).reserve(false).open().unwrap();
    assert!(answer(store.add("archive", "n", 7)).is_ok());
    assert_eq!(total(&path), 7);
}

// B3.5: closing writes, and so does dropping the last handle
#[test]
fn the_end_writes_what_was_counted() {
    for by_dropping in [false, true] {
        let (_directory, path) = fresh();
        let store = open(&path);
        let reply = store.add("archive", "n", 5);
        drop(store.add("archive", "n", 1));
        if by_dropping {
            drop(store);
        } else {
            store.close(Duration::from_secs(60));
            let late = answer(store.add("archive", "n", 1));
            assert_eq!(late.unwrap_err().kind(), StoreErrorKind::Closed);
            assert_eq!(answer(store.flush()).unwrap_err().kind(), StoreErrorKind::Closed);
        }
        assert!(answer(reply).is_ok());
        assert_eq!(total(&path), 6);
    }
}

// B3.5: a count belongs to the day on which it happened, whenever it is written
#[test]
fn counts_keep_their_day_over_midnight() {
    let (_directory, path) = fresh();
    let midnight = Day::parse("2026-12-01").unwrap().start();
    let time = ManualClock::new(midnight - Duration::from_millis(1));
    let options = SqliteStore::options(&path).flush_counters_every(HOUR).reserve(false);
    let store = options.clock(time.clock()).open().unwrap();
    drop(store.add("archive", "n", 1));
    time.set(midnight);
    drop(store.add("archive", "n", 10));
    drop(store);
    let wanted = [("2026-11-30", 1), ("2026-12-01", 10)].map(|(day, n)| ((day.to_owned(), "n".to_owned()), n));
    assert_eq!(in_the_file(&path), BTreeMap::from(wanted));
}

// A crash loses at most what was counted since the last write, and nothing that was answered
#[test]
fn a_kill_loses_at_most_one_interval() {
    if let Some(path) = support::child_work() {
        let store = open(Path::new(&path));
        for _ in 0..100 {
            drop(store.add("archive", "n", 1));
        }
        assert!(answer(store.flush()).is_ok());
        for _ in 0..50 {
            drop(store.add("archive", "n", 1));
        }
        tell("counted");
        loop {
            std::thread::park();
        }
    }
    let (_directory, path) = fresh();
    let mut child = support::child(&[], "a_kill_loses_at_most_one_interval", path.to_str().unwrap()).spawn().unwrap();
    assert_eq!(told(&mut child).next().as_deref(), Some("counted"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(total(&path), 100);
}

// B3.6: a write that fails is heard of, loses nothing while the process lives, and counts nothing twice
#[test]
fn counts_wait_while_the_file_cannot_be_written() {
    static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    set_listener(|notice| NOTICES.lock().unwrap().push(notice.to_string()));
    let (_directory, path) = fresh();
    let time = ManualClock::new(UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let open = || {
        let options = SqliteStore::options(&path).clock(time.clock()).busy_limit(Duration::from_millis(50));
        options.flush_counters_every(HOUR).reserve(false).open().unwrap()
    };
    let store = open();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reply = store.add("archive", "n", 4);
    let kind = |result: Result<(), StoreError>| result.unwrap_err().kind();
    assert_eq!(kind(answer(store.flush())), StoreErrorKind::Busy);
    assert_eq!(kind(answer(reply)), StoreErrorKind::Busy, "whoever waits hears it");
    let reply = store.add("archive", "n", 2);
    assert_eq!(seen(&store), 6, "and it is in the answers all the same");
    assert_eq!(kind(answer(store.flush())), StoreErrorKind::Busy);
    assert!(answer(reply).is_err());
    other.execute_batch("ROLLBACK").unwrap();
    time.advance(Duration::from_secs(5));
    // The store is asked again, then everything that waits is written.
    answer(store.settle());
    assert!(answer(store.flush()).is_ok());
    assert_eq!((total(&path), seen(&store)), (6, 6));
    assert!(NOTICES.lock().unwrap().iter().any(|notice| notice.contains("store_down")));

    // What cannot be written at the very end is said.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    drop(store.add("archive", "n", 9));
    store.close(Duration::from_millis(200));
    let said = NOTICES.lock().unwrap().iter().find(|notice| notice.contains("counts_lost")).cloned().unwrap();
    assert!(said.contains("archive/n 9 on 2027-01-15"), "{said}");
}

// Item 10: who moved a threshold and who reset a key, and why, is written down
#[test]
fn operators_are_written_down() {
    let (_directory, path) = fresh();
    let store = open(&path);
    let me = || Actor::new("mira", "a new contract");
    block(store.set_threshold("archive".into(), "bytes".into(), 500_000, me())).unwrap();
    block(store.set_threshold("archive".into(), "bytes".into(), 600_000, me())).unwrap();
    block(store.remove_threshold("archive".into(), "bytes".into(), me())).unwrap();
    block(store.remove_threshold("archive".into(), "bytes".into(), me())).unwrap();
    let key = LedgerKey::new("archive", "https://example.org/");
    assert!(answer(store.begin(key.clone(), 3)).is_ok());
    block(store.reset(key, me())).unwrap();
    let connection = Connection::open(&path).unwrap();
    let mut statement = connection.prepare("SELECT what, actor, reason, detail FROM event ORDER BY id").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    let events: Vec<(String, String, String, String)> = rows.map(Result::unwrap).collect();
    let wanted = [
        ("threshold_set", "archive/bytes above 500000"),
        ("threshold_set", "archive/bytes above 600000"),
        ("threshold_removed", "archive/bytes above 600000"),
        ("ledger_reset", "archive/https://example.org/: was open after 1 attempts"),
    ];
    let wanted = wanted.map(|(what, detail)| (what.into(), "mira".into(), "a new contract".into(), detail.into()));
    assert_eq!(events, wanted);
}
