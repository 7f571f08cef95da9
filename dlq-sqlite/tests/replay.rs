//! A replay over a file: in order, each result on disk before the next job begins (B1.8, STORE D12).
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::path::Path;
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{Actor, DeadLetterSink, Failure, MAX_REPLAYS, ManualClock, ReplayError, Replayer};
use retry_runtime::{Disposition, StopReason};
use rusqlite::Connection;
use support::{assert_intact, child, child_work, letter, tell, told, wait};

const JOBS: u32 = 30;

/// Letters of different ages, the oldest with the highest number.
fn park_all(path: &Path) {
    let store = SqliteStore::options(path).reserve(false).open().unwrap();
    for job in 0..JOBS {
        let mut letter = letter(&format!("job-{job:02}"));
        letter.failed_at = SystemTime::now() - Duration::from_secs(u64::from(job) * 60 + 60);
        letter.first_failed_at = letter.failed_at;
        assert!(wait(store.submit(letter)).is_kept());
    }
}

fn states(path: &Path) -> Vec<(String, String)> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare("SELECT job_id, status FROM dead_letter ORDER BY job_id DESC").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn count(states: &[(String, String)], state: &str) -> usize {
    states.iter().filter(|(_, found)| found == state).count()
}

// B1.8: a crash half-way does not undo what was recovered
#[test]
fn a_kill_in_the_middle_undoes_nothing() {
    if let Some(path) = child_work() {
        let store = SqliteStore::options(path).reserve(false).open().unwrap();
        let replayer = Replayer::new(store).no_limit().execute().on_blocking("fetch", |job| {
            tell(&format!("start {}", job.job_id));
            if job.job_id == "job-19" {
                // Here the parent kills.
                std::thread::sleep(Duration::from_secs(600));
            }
            Ok::<(), ReplayError>(())
        });
        replayer.run_blocking().unwrap();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    park_all(&path);
    let mut process = child(&[], "a_kill_in_the_middle_undoes_nothing", path.to_str().unwrap()).spawn().unwrap();
    let started: Vec<String> = told(&mut process)
        .map(|line| line.strip_prefix("start ").unwrap().to_owned())
        .take_while(|job| job != "job-19")
        .collect();
    process.kill().unwrap();
    process.wait().unwrap();

    let longest_unseen_first: Vec<String> = (20..JOBS).rev().map(|job| format!("job-{job:02}")).collect();
    assert_eq!(started, longest_unseen_first);
    let after = states(&path);
    assert!(after[..10].iter().all(|(_, state)| state == "recovered"), "{after:?}");
    assert_eq!((after[10].1.as_str(), count(&after, "parked")), ("replaying", 19));

    // The next run takes the rest, and after the lease also the one that was killed with its process.
    let time = ManualClock::new(SystemTime::now() + Duration::from_secs(3_600));
    let store = SqliteStore::options(&path).clock(time.clock()).reserve(false).open().unwrap();
    let replayer = Replayer::new(store).no_limit().on_blocking("fetch", |_| Ok::<(), ReplayError>(()));
    let dry = replayer.run_blocking().unwrap();
    assert!(dry.dry_run);
    assert_eq!(states(&path), after, "a dry run changes nothing");
    // D15: a short-lived program does it in one run.
    let report = replayer.execute().run_blocking().unwrap();
    assert_eq!((report.matched, report.recovered, report.under_way), (20, 20, 0), "{report}");
    assert_eq!(count(&states(&path), "recovered"), 30);
    let crashes: i64 =
        Connection::open(&path).unwrap().query_row("SELECT sum(crashes) FROM letter", [], |row| row.get(0)).unwrap();
    assert_eq!(crashes, 1);
    assert_intact(&path);
}

// B1.8: 20 by default, dry by default, and a failure stays parked
#[test]
fn a_replay_is_dry_and_of_twenty_unless_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    park_all(&path);
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    let replayer = Replayer::new(store).on_blocking("fetch", |_| Ok::<(), ReplayError>(()));
    let report = replayer.run_blocking().unwrap();
    assert_eq!((report.dry_run, report.scanned, report.would_replay), (true, 20, 20));
    assert_eq!(count(&states(&path), "parked"), 30);
    let report = replayer.execute().run_blocking().unwrap();
    assert_eq!((report.dry_run, report.recovered), (false, 20));
    let after = states(&path);
    assert!(after[..20].iter().all(|(_, state)| state == "recovered"), "the longest unseen ones: {after:?}");
}

// S1: by whom and why a letter was closed goes with the closing; who brought it back stands in the events
#[test]
fn a_restored_letter_is_open_and_says_who_restored_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    assert!(wait(store.submit(letter("job-0"))).is_kept());
    let failing = Replayer::new(store.clone()).execute().on_blocking("fetch", |_| {
        Err::<(), _>(ReplayError::failed(Failure::new(StopReason::Permanent, Disposition::Permanent, "forbidden")))
    });
    for _ in 0..MAX_REPLAYS {
        failing.run_blocking().unwrap();
    }
    let closing = || -> (String, Option<String>, Option<String>, Option<i64>, u32) {
        let sql = "SELECT state, closed_by, closed_reason, closed_at, max_replays FROM letter";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
        Connection::open(&path).unwrap().query_row(sql, [], read).unwrap()
    };
    let (state, by, why, at, _) = closing();
    assert_eq!((state.as_str(), by.as_deref(), why.as_deref()), ("abandoned", Some("replay"), Some("abandoned")));
    assert!(at.is_some());

    let replayer = failing.abandoned(2).actor(Actor::new("ada", "the quota was raised"));
    let report = replayer.run_blocking().unwrap();
    assert_eq!((report.restored, report.still_failing), (1, 1), "{report}");
    assert_eq!(closing(), ("parked".to_owned(), None, None, None, MAX_REPLAYS + 2));
    let event: Vec<String> = Connection::open(&path)
        .unwrap()
        .query_row("SELECT actor, reason, before, after, detail FROM event WHERE what = 'restored'", [], |row| {
            (0..5).map(|at| row.get(at)).collect()
        })
        .unwrap();
    assert_eq!(event, ["ada", "the quota was raised", "abandoned", "parked", "2 more replays"]);
    assert_eq!(count(&states(&path), "parked"), 1);
    assert_intact(&path);
}
