//! What operators and programs do to a store without meaning harm.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{DeadLetterSink, DeadLetterStore, Filter, ManualClock, Parking, Spill};
use support::{child, child_work, letter, parkings, run, spill_files, tell, told, wait};

fn open(path: impl AsRef<Path>) -> SqliteStore {
    SqliteStore::options(path).reserve(false).open().unwrap()
}

fn count(store: &SqliteStore) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.count(Filter::all())).unwrap()
}

#[track_caller]
fn assert_parked(parking: &Parking) {
    assert!(matches!(parking, Parking::Parked { .. }), "{parking}");
}

fn settle(store: &SqliteStore) {
    assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
}

/// Until no spill file waits. (A thread that spilled last may still be ending, and its file is left alone until then.)
fn bring_home(store: &SqliteStore, time: &ManualClock) {
    settle(store);
    for _ in 0..10_000 {
        if store.spill_files().unwrap().is_empty() {
            break;
        }
        time.advance(Duration::from_secs(10));
        settle(store);
    }
}

// D7: a relative path means one file for as long as the store lives
#[test]
fn the_working_directory_changes() {
    if let Some(directory) = child_work() {
        std::env::set_current_dir(&directory).unwrap();
        let store = SqliteStore::options("jobs.db").reserve(false).spill_dirs(["refuge"]).open().unwrap();
        assert_parked(&wait(store.submit(letter("a"))));
        std::fs::create_dir("elsewhere").unwrap();
        std::env::set_current_dir("elsewhere").unwrap();
        assert_parked(&wait(store.submit(letter("b"))));
        assert_eq!(count(&store), 2);
        store.close(Duration::from_secs(30));
        assert!(wait(store.submit(letter("c"))).is_kept());
        return tell("done");
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("refuge")).unwrap();
    let command = child(&[], "the_working_directory_changes", directory.path().to_str().unwrap());
    assert_eq!(run(command), ["done"]);
    assert_eq!(parkings(&directory.path().join("jobs.db")).len(), 2);
    assert_eq!(std::fs::read_dir(directory.path().join("elsewhere")).unwrap().count(), 0);
    assert_eq!(spill_files(&[&directory.path().join("refuge")]).len(), 1);
}

// D7, D8: a link to a store is that store, with its lock, its spill and its corrupt files
#[test]
fn the_store_is_opened_by_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("jobs.db"), directory.path().join("link.db"));
    drop(open(&path));
    std::os::unix::fs::symlink("jobs.db", &link).unwrap();
    let by_link = open(&link);
    assert_parked(&wait(by_link.submit(letter("a"))));
    by_link.close(Duration::from_secs(30));
    assert!(wait(by_link.submit(letter("late"))).is_kept());
    drop(by_link);
    let time = ManualClock::new(SystemTime::now());
    let store = SqliteStore::options(&path).clock(time.clock()).reserve(false).open().unwrap();
    bring_home(&store, &time);
    assert_eq!(count(&store), 2, "what was spilled beside the link comes home");
    drop(store);
    std::fs::write(&path, "not a database".repeat(1_000)).unwrap();
    let by_link = open(&link);
    assert_eq!(by_link.set_aside_files().len(), 1);
    assert_parked(&wait(by_link.submit(letter("b"))));
    drop(by_link);
    assert!(link.is_symlink(), "the file was set aside, not the link to it");
    assert_eq!(parkings(&path).len(), 1);
}

// D8: a store takes in what a store of another scope spilled on the same file, and puts it where it belongs
#[test]
fn spilled_letters_stay_in_their_scope() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let time = ManualClock::new(SystemTime::now());
    let of = |scope: &str| SqliteStore::options(&path).clock(time.clock()).reserve(false).scope(scope).open().unwrap();
    let red = of("red");
    red.close(Duration::from_secs(30));
    assert!(matches!(wait(red.submit(letter("a"))), Parking::Spilled { .. }));
    drop(red);
    let blue = of("blue");
    bring_home(&blue, &time);
    assert_eq!((count(&blue), blue.spill_files().unwrap().len()), (0, 0));
    assert_eq!(count(&of("red")), 1);
}

// D8: a process that was ending while this one opened leaves its letters to it
#[test]
fn letters_of_a_process_that_ends_later_come_home() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let other = Spill::beside(&path);
    other.append(&letter("a")).unwrap();
    let time = ManualClock::new(SystemTime::now());
    let store = SqliteStore::options(&path).clock(time.clock()).reserve(false).open().unwrap();
    settle(&store);
    assert_eq!(count(&store), 0, "its file is locked");
    drop(other);
    time.advance(Duration::from_secs(10));
    settle(&store);
    assert_eq!((count(&store), store.spill_files().unwrap().len()), (1, 0));
}

// D7: the file is emptied while its log holds what was committed last (SQLite deletes such a log)
#[test]
fn the_file_is_emptied_and_its_log_is_not() {
    if let Some(path) = child_work() {
        let store = open(path);
        for job in 0..20 {
            assert_parked(&wait(store.submit(letter(&job.to_string()))));
        }
        tell("parked");
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let mut command = child(&[], "the_file_is_emptied_and_its_log_is_not", path.to_str().unwrap());
    let mut process = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    assert_eq!(told(&mut process).next().as_deref(), Some("parked"));
    process.kill().unwrap();
    process.wait().unwrap();
    let whole = directory.path().join("copy");
    std::fs::copy(&path, &whole).unwrap();
    std::fs::write(&path, "").unwrap();

    let store = open(&path);
    assert_parked(&wait(store.submit(letter("new"))));
    let aside = store.set_aside_files();
    assert_eq!(aside.len(), 1, "the log was thrown away");
    drop(store);
    // File and log together again.
    std::fs::rename(whole, &aside[0]).unwrap();
    assert_eq!(parkings(&aside[0]).len(), 20);
}

// D19
#[test]
fn any_busy_limit_is_a_limit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    for limit in [Duration::MAX, Duration::from_secs(u64::from(u32::MAX)), Duration::ZERO] {
        let store = SqliteStore::options(&path).reserve(false).busy_limit(limit).open().unwrap();
        assert_parked(&wait(store.submit(letter("a"))));
        assert_eq!(count(&store), 1);
    }
}

struct Bad;

impl Wake for Bad {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics");
    }
}

// D5: whoever waits badly does not stop the store for others
#[test]
fn a_waker_panics() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path().join("jobs.db"));
    for job in ["a", "b"] {
        let mut ticket = store.submit(letter(job));
        let waker = Waker::from(Arc::new(Bad));
        // It may be answered already; then the next one is tried.
        let _early = Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker));
    }
    assert_parked(&wait(store.submit(letter("c"))));
    assert_eq!(count(&store), 3);
}
