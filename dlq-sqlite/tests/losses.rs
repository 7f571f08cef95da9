//! Store and spill both fail: the loss is counted, said aloud with everything but the payload, and written down when the
//! store works again (STORE D18).
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{DeadLetterSink, ManualClock, Parking, lost};
use support::{child, child_work, letter, parkings, tell, wait};

/// In a process of its own: losses are counted by process.
fn lose_three(path: &str) {
    let time = ManualClock::new(SystemTime::now());
    let spill = format!("{path}/is/a/file");
    let store = SqliteStore::options(path)
        .clock(time.clock())
        .busy_limit(Duration::from_millis(100))
        .reserve(false)
        .spill_dirs([&spill])
        .open()
        .unwrap();
    let other = rusqlite::Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for job in ["a", "b", "c"] {
        let letter = letter(job);
        let id = letter.park_id;
        let parking = wait(store.submit(letter));
        assert!(matches!(parking, Parking::Lost { .. }), "{parking}");
        tell(&format!("lost {id}"));
    }
    other.execute_batch("ROLLBACK").unwrap();
    time.advance(Duration::from_secs(5));
    assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    assert!(!store.is_down());
    tell(&format!("counted {}", lost()));
}

// 11.1, D18
#[test]
fn a_loss_is_loud_and_counted() {
    if let Some(path) = child_work() {
        return lose_three(&path);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let output = child(&[], "a_loss_is_loud_and_counted", path.to_str().unwrap()).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{out}\n{err}");
    let lost: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("@ lost ")).collect();
    assert_eq!(lost.len(), 3);
    for (id, job) in lost.iter().zip(["a", "b", "c"]) {
        let line = err.lines().find(|line| line.contains(id)).unwrap();
        for part in ["LOST", "fetch", &format!("job {job} "), "exhausted:429"] {
            assert!(line.contains(part), "{part} is missing in {line}");
        }
        assert!(!line.contains("prompt"), "the payload is no part of it: {line}");
    }
    assert!(out.contains("@ counted 3"), "{out}");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let row: (String, String, i64) = connection
        .query_row("SELECT operation, counter, value FROM daily_stats", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!(row, ("dead_letter".to_owned(), "lost".to_owned(), 3));
    assert!(parkings(&path).is_empty());
}
