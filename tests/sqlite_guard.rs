//! Jobs that are dropped or panic, over sinks that work, fail, are full or closed: each ends in exactly one place
//! (SEMANTICS 11.1, 11.3).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

use std::collections::BTreeSet;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use futures_util::FutureExt;
use retry_runtime::dead_letter::{BlockingSink, DeadLetterSink, Spill};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::{Classify, retry};

#[derive(Debug, PartialEq, thiserror::Error, Classify)]
enum Failed {
    #[error("forbidden")]
    #[classify(permanent)]
    Forbidden,
    #[error("not there")]
    #[classify(gone)]
    NotThere,
    #[error("busy")]
    #[classify(retryable)]
    Busy,
}

#[retry(max_retries = 1, base_delay = "1m", name = "fetch", dead_letter(sink = sink, job_id = job, payload = job))]
async fn fetch(sink: &dyn DeadLetterSink, job: usize) -> Result<(), Failed> {
    match job % 6 {
        0 => Ok(()),
        1 => Err(Failed::NotThere),
        2 => Err(Failed::Forbidden),
        3 => panic!("job {job}"),
        // dropped in its wait
        4 => Err(Failed::Busy),
        // dropped in its attempt
        _ => pending().await,
    }
}

const JOBS: usize = 60;

/// Jobs that ended well.
async fn run(sink: &dyn DeadLetterSink, jobs: std::ops::Range<usize>) -> usize {
    let mut ended_well = 0;
    for job in jobs {
        let call = AssertUnwindSafe(fetch(sink, job)).catch_unwind();
        if job % 6 > 3 {
            assert!(call.now_or_never().is_none(), "{job} ended");
            continue;
        }
        match call.await {
            Ok(Ok(()) | Err(Failed::NotThere)) => ended_well += 1,
            Ok(Err(failed)) => assert_eq!((job % 6, failed), (2, Failed::Forbidden)),
            Err(panic) => assert_eq!(panic.downcast_ref::<String>(), Some(&format!("job {job}"))),
        }
    }
    ended_well
}

/// The jobs that are owed an end, of all.
fn owed(jobs: std::ops::Range<usize>) -> BTreeSet<String> {
    jobs.filter(|job| job % 6 > 1).map(|job| job.to_string()).collect()
}

fn parked(path: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut statement = connection.prepare("SELECT job_id FROM parking JOIN letter USING(seq)").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn spilled(directory: &Path) -> Vec<String> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|last| last == "ndjson")).collect();
    let job = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["letter"]["job_id"].as_str().unwrap().to_owned()
    };
    files.iter().flat_map(|path| std::fs::read_to_string(path).unwrap().lines().map(job).collect::<Vec<_>>()).collect()
}

/// Each once, and all of them.
fn assert_each_once(found: &[String], wanted: &BTreeSet<String>) {
    assert_eq!(found.len(), wanted.len(), "{found:?}");
    assert_eq!(&found.iter().cloned().collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn every_job_ends_in_one_place_whatever_happens_to_it_and_to_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).busy_limit(Duration::from_millis(100)).reserve(false).open().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let ended_well = runtime.block_on(run(&store, 0..JOBS));
    // 11.3: durable once the writer commits, and `close` waits for it
    store.close(Duration::from_secs(30));
    assert_eq!(ended_well, 20);
    assert_each_once(&parked(&path), &owed(0..JOBS));
    assert!(spilled(directory.path()).is_empty());

    // a closed store
    let ended_well = runtime.block_on(run(&store, JOBS..2 * JOBS));
    assert_eq!(ended_well, 20);
    // what came late is on its way to the spill: whoever drops the last handle waits for it
    drop(store);
    assert_each_once(&spilled(directory.path()), &owed(JOBS..2 * JOBS));
    assert_each_once(&parked(&path), &owed(0..JOBS));

    // a store that somebody else holds
    for name in ["spill", "full"] {
        std::fs::create_dir(directory.path().join(name)).unwrap();
    }
    let store = SqliteStore::options(directory.path().join("held.db")).busy_limit(Duration::from_millis(50));
    let store = store.reserve(false).spill_dirs([directory.path().join("spill")]).open().unwrap();
    let other = rusqlite::Connection::open(directory.path().join("held.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(runtime.block_on(run(&store, 0..JOBS)), 20);
    store.close(Duration::from_secs(30));
    assert_each_once(&spilled(&directory.path().join("spill")), &owed(0..JOBS));

    // a sink that is full
    let before = retry_runtime::dead_letter::lost();
    let full = |spill| BlockingSink::with_spill(spill, |_| Err::<String, _>(StoreError::new(StoreErrorKind::Full, "")));
    let elsewhere = directory.path().join("full");
    let sink = full(Spill::in_dirs("q", [elsewhere.clone()])).unwrap();
    assert_eq!(runtime.block_on(run(&sink, 0..JOBS)), 20);
    sink.close(Duration::from_secs(30));
    assert_each_once(&spilled(&elsewhere), &owed(0..JOBS));
    assert_eq!(retry_runtime::dead_letter::lost(), before);

    // and has no spill either: each is a loss, counted once
    let sink = full(Spill::in_dirs("q", Vec::<PathBuf>::new())).unwrap();
    assert_eq!(runtime.block_on(run(&sink, 0..JOBS)), 20);
    sink.close(Duration::from_secs(30));
    assert_eq!(retry_runtime::dead_letter::lost() - before, owed(0..JOBS).len() as u64);
}
