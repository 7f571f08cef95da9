//! Store and spill both fail: the loss is counted, said aloud with everything but the payload, and written down when the
//! store works again (STORE D18).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{DeadLetterSink, ManualClock, Parking, Payload, lost};
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

/// A file system of its own, gone with the value.
struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg(&self.0).status();
    }
}

/// Letters of a size, until one of them is lost.
fn spill_until_lost(store: &SqliteStore, size: usize, spilled: &mut BTreeSet<String>) {
    for n in 0.. {
        let mut letter = letter(&format!("{size}-{n}"));
        letter.payload = Payload::Json(format!("\"{}\"", "x".repeat(size)));
        letter.history.clear();
        let id = letter.park_id.to_string();
        match wait(store.submit(letter)) {
            Parking::Spilled { .. } => assert!(spilled.insert(id)),
            Parking::Lost { .. } => return,
            other => panic!("{other}"),
        }
    }
}

// D8: a short write is cut back: it must not take the next line with it
#[test]
fn a_full_spill_disk_loses_only_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let disk = Disk(directory.path().join("spill"));
    std::fs::create_dir(&disk.0).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&disk.0).status().unwrap();
    assert!(mounted.success(), "this test mounts a file system: it has to be run as root");
    let time = ManualClock::new(SystemTime::now());
    let store = SqliteStore::options(&path)
        .clock(time.clock())
        .busy_limit(Duration::from_millis(50))
        .reserve(false)
        .spill_dirs([&disk.0])
        .open()
        .unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut kept = BTreeSet::new();
    // Each size leaves less room than it needs, and the next one still fits into it.
    for size in [9_000, 3_000, 700] {
        let before = kept.len();
        spill_until_lost(&store, size, &mut kept);
        assert!(kept.len() > before, "{size}: nothing fitted any more");
    }
    other.execute_batch("ROLLBACK").unwrap();
    for seconds in [5, 10] {
        time.advance(Duration::from_secs(seconds));
        assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    }
    drop(store);
    assert_eq!(parkings(&path), kept);
    let bad = std::fs::read_dir(&disk.0)
        .unwrap()
        .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|is| is == "bad"))
        .count();
    assert_eq!(bad, 0);
}
