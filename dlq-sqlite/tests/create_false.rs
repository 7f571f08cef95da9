//! A store that is not to be made where there is none: somebody else's file stays as it is, and a damaged store is replaced
//! all the same (STORE D7).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use dlq_sqlite::{OpenError, SqliteOptions, SqliteStore};
use retry_runtime::dead_letter::{DeadLetterSink, ManualClock, Parking};
use retry_runtime::error::StoreErrorKind;
use retry_runtime::observe::set_listener;
use rusqlite::Connection;
use support::{assert_intact, child, child_work, letter, no_larger_than, parkings, run, spilled, tell, wait};

static NOTICES: Mutex<Vec<(&str, String)>> = Mutex::new(Vec::new());

fn listen() {
    set_listener(|notice| NOTICES.lock().unwrap().push((notice.name, notice.to_string())));
}

/// How often it was said of a file here.
fn said(name: &str, directory: &Path) -> usize {
    let about = |text: &str| text.contains(directory.to_str().unwrap());
    NOTICES.lock().unwrap().iter().filter(|(said, text)| *said == name && about(text)).count()
}

fn fresh() -> (tempfile::TempDir, PathBuf) {
    listen();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    (directory, path)
}

fn options(path: &Path) -> SqliteOptions {
    SqliteStore::options(path).create(false).reserve(false).busy_limit(Duration::from_millis(250))
}

/// A store with a letter, closed.
fn make(path: &Path) {
    let store = SqliteStore::options(path).reserve(false).open().unwrap();
    assert_parked(&wait(store.submit(letter("before"))));
    store.close(Duration::from_secs(60));
}

/// Overwrites everything but the header, while nobody here has it open.
fn damage(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&vec![0; 40 * 4_096], 4_096).unwrap();
}

#[track_caller]
fn assert_parked(parking: &Parking) {
    assert!(matches!(parking, Parking::Parked { .. }), "{parking}");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

// D7, D24
#[test]
fn a_file_that_is_no_database_is_refused_and_stays() {
    let (directory, path) = fresh();
    for text in ["hello", &"no database at all".repeat(1_000)] {
        std::fs::write(&path, text).unwrap();
        let error = options(&path).open().err().unwrap();
        assert!(matches!(error, OpenError::NotADatabase(_)), "{error}");
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        assert_eq!(names(directory.path()), ["jobs.db"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    assert_eq!((said("store_down", directory.path()), said("store_set_aside", directory.path())), (0, 0));
    // Also where others would hold the lock.
    let lock = File::create(directory.path().join("jobs.db.lock")).unwrap();
    lock.lock_shared().unwrap();
    assert!(matches!(options(&path).open(), Err(OpenError::NotADatabase(_))));
    assert_eq!(names(directory.path()), ["jobs.db", "jobs.db.lock"]);
}

// D7: by its header it is not ours, whatever is wrong with the rest
#[test]
fn another_programs_damaged_file_is_refused_and_stays() {
    let (directory, path) = fresh();
    for (id, also_made) in [(7, true), (0, false)] {
        let sql = format!("PRAGMA page_size = 4096; PRAGMA application_id = {id}; CREATE TABLE t(x)");
        Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        // Behind the header: the list of tables.
        File::options().write(true).open(&path).unwrap().write_all_at(&[0xff; 3_000], 100).unwrap();
        let before = std::fs::read(&path).unwrap();
        let Err(error) = options(&path).open() else { panic!("{id}: {:?}", NOTICES.lock().unwrap()) };
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
        if also_made {
            let error = SqliteStore::open(&path).err().unwrap();
            assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
        }
        assert_eq!(names(directory.path()), ["jobs.db"]);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        std::fs::remove_file(&path).unwrap();
    }
}

// D7: set aside, said, and parking goes on
#[test]
fn a_damaged_store_is_set_aside_and_replaced() {
    let (directory, path) = fresh();
    make(&path);
    damage(&path);
    let damaged = std::fs::read(&path).unwrap();
    let store = options(&path).open().unwrap();
    assert_eq!(said("store_set_aside", directory.path()), 1);
    assert!(!store.is_down());
    assert_parked(&wait(store.submit(letter("a"))));
    let aside = store.set_aside_files();
    assert_eq!(aside.len(), 1);
    assert_eq!(std::fs::read(&aside[0]).unwrap(), damaged);
    drop(store);
    let store = options(&path).open().unwrap();
    assert_eq!((said("store_set_aside", directory.path()), store.set_aside_files().len()), (1, 1));
    drop(store);
    assert_eq!(parkings(&path).len(), 1);
    assert_intact(&path);
}

// D7: while others have it open it is left alone, letters are spilled, and that is said
#[test]
fn a_damaged_store_that_others_have_open_is_spilled_for() {
    let (directory, path) = fresh();
    make(&path);
    damage(&path);
    let before = std::fs::read(&path).unwrap();
    let other = File::open(directory.path().join("jobs.db.lock"))
        .or_else(|_| File::create(directory.path().join("jobs.db.lock")))
        .unwrap();
    other.lock_shared().unwrap();
    let time = ManualClock::new(SystemTime::now());
    let store = options(&path).clock(time.clock()).open().unwrap();
    assert!(store.is_down());
    assert_eq!((said("store_down", directory.path()), said("store_set_aside", directory.path())), (1, 0));
    let Parking::Spilled { because, .. } = wait(store.submit(letter("a"))) else { panic!("not spilled") };
    assert_eq!(because.kind(), StoreErrorKind::Corrupt);
    assert!(store.set_aside_files().is_empty());
    assert_eq!(std::fs::read(&path).unwrap(), before);
    drop(other);
    for seconds in [5, 10] {
        time.advance(Duration::from_secs(seconds));
        assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    }
    assert_eq!((store.is_down(), store.set_aside_files().len()), (false, 1));
    assert_eq!(said("store_set_aside", directory.path()), 1);
    drop(store);
    assert_eq!((parkings(&path).len(), spilled(&[directory.path()]).len()), (1, 0));
}

// D7: damage that shows while the store runs. Its own file is its own, also without its header
#[test]
fn a_store_that_becomes_damaged_is_replaced() {
    for header_too in [false, true] {
        let (directory, path) = fresh();
        make(&path);
        let time = ManualClock::new(SystemTime::now());
        let store = options(&path).clock(time.clock()).open().unwrap();
        assert_parked(&wait(store.submit(letter("b"))));
        // By other processes: this one must not open and close the file.
        let shell = |script: &str| {
            assert!(Command::new("sh").args(["-ec", script]).arg(&path).status().unwrap().success());
        };
        shell(
            "sqlite3 \"$0\" 'PRAGMA wal_checkpoint(TRUNCATE)' > /dev/null
             dd if=/dev/zero of=\"$0\" bs=4096 seek=1 count=40 conv=notrunc status=none
             sqlite3 \"$0\" 'PRAGMA user_version = 1'",
        );
        assert!(matches!(wait(store.submit(letter("a"))), Parking::Spilled { .. }));
        if header_too {
            shell("dd if=/dev/zero of=\"$0\" bs=4096 count=1 conv=notrunc status=none; : > \"$0-wal\"");
        }
        for seconds in [5, 10] {
            time.advance(Duration::from_secs(seconds));
            assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
        }
        assert_eq!((store.is_down(), store.set_aside_files().len()), (false, 1), "header too: {header_too}");
        assert_eq!(said("store_set_aside", directory.path()), 1);
        drop(store);
        assert_eq!((parkings(&path).len(), spilled(&[directory.path()]).len()), (1, 0));
    }
}

// D7: a file that took the place of the store's is not the store's
#[test]
fn what_replaced_a_running_store_is_left_alone() {
    let (directory, path) = fresh();
    make(&path);
    let store = options(&path).open().unwrap();
    assert_parked(&wait(store.submit(letter("b"))));
    std::fs::rename(&path, directory.path().join("moved")).unwrap();
    std::fs::remove_file(directory.path().join("jobs.db-wal")).unwrap();
    std::fs::remove_file(directory.path().join("jobs.db-shm")).unwrap();
    let text = "no database at all".repeat(1_000);
    std::fs::write(&path, &text).unwrap();
    assert!(matches!(wait(store.submit(letter("a"))), Parking::Spilled { .. }));
    assert!(store.is_down() && store.set_aside_files().is_empty());
    drop(store);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

// D7: all or nothing. Were the damaged file away and no fresh one there, no later opening would get past that
#[test]
fn a_damaged_store_that_cannot_be_replaced_is_put_back() {
    if let Some(path) = child_work() {
        let store = options(Path::new(&path)).open().unwrap();
        return tell(if store.is_down() { "down" } else { "up" });
    }
    let (directory, path) = fresh();
    make(&path);
    damage(&path);
    let before = std::fs::read(&path).unwrap();
    // Room for the index of the log, by which the damage is found, and none for the tables.
    let around = no_larger_than(60_000);
    let around: Vec<&str> = around.iter().map(String::as_str).collect();
    let name = "a_damaged_store_that_cannot_be_replaced_is_put_back";
    assert_eq!(run(child(&around, name, path.to_str().unwrap())), ["down"]);
    assert!(std::fs::read(&path).unwrap() == before, "the damaged file is back");
    assert!(!names(directory.path()).iter().any(|name| name.contains(".corrupt-")));
    let store = options(&path).open().unwrap();
    assert_eq!((store.is_down(), store.set_aside_files().len()), (false, 1));
}
