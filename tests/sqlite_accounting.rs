//! Annotated functions over a store that fails for a while: every job ends in exactly one place (SEMANTICS 11.1), and the
//! caller gets the error it would have got without the fault.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::ManualClock;
use retry_runtime::{Classify, retry};

static RUNS: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug, PartialEq, Classify)]
enum Failed {
    #[classify(permanent)]
    Forbidden,
    #[classify(retryable)]
    Overloaded,
    #[classify(gone)]
    NotThere,
    #[classify(permanent)]
    Refused,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Failed {}

/// What becomes of a job.
fn ending(job: usize) -> Result<(), Failed> {
    match job % 5 {
        0 => Ok(()),
        1 => Err(Failed::NotThere),
        2 => Err(Failed::Forbidden),
        _ => Err(Failed::Overloaded),
    }
}

#[retry(
    max_retries = 2,
    base_delay = "1ms",
    name = "fetch",
    ledger(store = store, key = key, max_attempts = 3, skipped = Err(Failed::Refused)),
    dead_letter(sink = store, job_id = key, payload = job)
)]
async fn fetch(store: &SqliteStore, job: usize, key: &str) -> Result<(), Failed> {
    RUNS.fetch_add(1, Ordering::Relaxed);
    ending(job)
}

fn ids(path: &Path, sql: &str) -> BTreeSet<String> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn spilled(directory: &Path) -> BTreeSet<String> {
    let mut jobs = BTreeSet::new();
    for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "ndjson") {
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                jobs.insert(line["letter"]["job_id"].as_str().unwrap().to_owned());
            }
        }
    }
    jobs
}

const JOBS: usize = 60;

/// Runs jobs, with the file locked by somebody else for those in the middle.
#[tokio::test]
async fn every_job_ends_in_one_place_whatever_the_store_does() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let time = ManualClock::new(SystemTime::now());
    let store = SqliteStore::options(&path)
        .clock(time.clock())
        .busy_limit(Duration::from_millis(100))
        .reserve(false)
        .open()
        .unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    let (mut succeeded, mut gone, mut failed) = (0, 0, BTreeSet::new());
    for job in 0..JOBS {
        match job {
            20 => other.execute_batch("BEGIN IMMEDIATE").unwrap(),
            40 => {
                other.execute_batch("ROLLBACK").unwrap();
                time.advance(Duration::from_secs(5));
                store.settle().await;
                assert!(!store.is_down());
            }
            _ => {}
        }
        let key = job.to_string();
        let result = fetch(&store, job, &key).await;
        // The caller's error is unchanged whatever happens to the letter.
        assert_eq!(result, ending(job), "{job}");
        match result {
            Ok(()) => succeeded += 1,
            Err(Failed::NotThere) => gone += 1,
            Err(_) => assert!(failed.insert(key)),
        }
    }
    let parked = ids(&path, "SELECT job_id FROM dead_letter");
    let waiting = spilled(directory.path());
    assert!(parked.len() > 20 && waiting.len() > 10, "the fault has to bite: {} {}", parked.len(), waiting.len());
    assert!(parked.is_disjoint(&waiting));
    assert_eq!(&parked | &waiting, failed);
    assert_eq!(succeeded + gone + parked.len() + waiting.len(), JOBS);
    assert_eq!(retry_runtime::dead_letter::lost(), 0);

    // The fault is over: what was spilled comes home, and what is done is refused from now on.
    time.advance(Duration::from_secs(10));
    store.settle().await;
    assert_eq!(ids(&path, "SELECT job_id FROM dead_letter"), failed);
    assert!(spilled(directory.path()).is_empty());
    let before = RUNS.load(Ordering::Relaxed);
    assert_eq!(fetch(&store, 0, "0").await, Err(Failed::Refused));
    assert_eq!(fetch(&store, 1, "1").await, Err(Failed::Refused));
    assert_eq!(RUNS.load(Ordering::Relaxed), before, "a refused call runs nothing");
}
