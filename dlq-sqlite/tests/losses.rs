//! Store and spill both fail: the loss is counted, said aloud with everything but the payload, and written down when the
//! store works again (STORE D18).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{DeadLetterSink, ManualClock, Parking, Payload, lost};
use support::{child, child_work, letter, no_larger_than, parkings, tell, wait};

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

/// Letters of a size, until one of them is lost. How many were spilled before.
fn spill_until_lost(store: &SqliteStore, size: usize) -> usize {
    for n in 0.. {
        let mut letter = letter(&format!("{size}-{n}"));
        letter.payload = Payload::Json(format!("\"{}\"", "x".repeat(size)));
        letter.history.clear();
        let id = letter.park_id.to_string();
        match wait(store.submit(letter)) {
            Parking::Spilled { .. } => tell(&format!("spilled {id}")),
            Parking::Lost { .. } => return n,
            other => panic!("{other}"),
        }
    }
    0
}

/// With the file locked, and a spill file that cannot grow beyond a limit.
fn spill_to_the_brim(path: &str) {
    let store = SqliteStore::options(path)
        .busy_limit(Duration::from_millis(50))
        .reserve(false)
        .spill_dirs([Path::new(path).parent().unwrap()])
        .open()
        .unwrap();
    let other = rusqlite::Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Each size leaves less room than it needs, and the next one still fits into it.
    for size in [9_000, 2_500, 200] {
        assert!(spill_until_lost(&store, size) > 0, "{size}: nothing fitted any more");
    }
}

// D8: a short write is cut back: it must not take the next line with it
#[test]
fn a_full_spill_loses_only_what_it_says() {
    if let Some(path) = child_work() {
        return spill_to_the_brim(&path);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    SqliteStore::options(&path).reserve(false).open().unwrap().close(Duration::from_secs(30));
    let around = no_larger_than(64_000);
    let around: Vec<&str> = around.iter().map(String::as_str).collect();
    let told = support::run(child(&around, "a_full_spill_loses_only_what_it_says", path.to_str().unwrap()));
    let kept: BTreeSet<String> = told.iter().map(|line| line.strip_prefix("spilled ").unwrap().to_owned()).collect();
    assert!(kept.len() > 6, "{kept:?}");
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    drop(store);
    assert_eq!(parkings(&path), kept);
    let is_bad = |path: PathBuf| path.extension().is_some_and(|extension| extension == "bad");
    assert!(!std::fs::read_dir(directory.path()).unwrap().any(|entry| is_bad(entry.unwrap().path())));
}
