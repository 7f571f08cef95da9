//! Bulk operations over a file: killed in the middle, taken up again, and nothing recovered twice (STORE D21, B18, B27).
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{
    Actor, BulkOperations, DeadLetterSink, DeadLetterStore, Filter, ItemOutcome, LetterState, ManualClock, MemberClaim,
    Operation, OperationRequest, OperationRunner, OperationStatus, ReplayError, Verb,
};
use retry_runtime::error::StoreErrorKind;
use rusqlite::Connection;
use support::{assert_intact, child, child_work, letter, tell, told, wait};

const JOBS: u32 = 30;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::options(path).reserve(false).open().unwrap()
}

fn ada() -> Actor {
    Actor::new("ada", "the quota was raised")
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn park(store: &SqliteStore, job: &str) {
    assert!(wait(store.submit(letter(job))).is_kept());
}

fn begin(store: &SqliteStore) -> Operation {
    block_on(store.start(OperationRequest::new(Verb::Replay, Filter::all()), ada())).unwrap()
}

fn counts(operation: &Operation) -> BTreeMap<&'static str, u64> {
    operation.counts.iter().map(|(outcome, n)| (outcome.as_str(), n)).collect()
}

/// Letters by the operation's events: how often each was recovered.
fn recoveries(path: &Path, op_id: &str) -> BTreeMap<i64, i64> {
    let connection = Connection::open(path).unwrap();
    let sql =
        "SELECT seq, count(*) FROM event WHERE op_id = ?1 AND what = 'replayed' AND after = 'recovered' GROUP BY seq";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([op_id], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

// B27, D21: the process is killed with a job under way; discarded meanwhile is skipped, parked later is not taken.
#[test]
fn a_killed_run_is_taken_up_and_adds_up() {
    if let Some(work) = child_work() {
        let (path, op_id) = work.split_once('|').unwrap();
        let runner = OperationRunner::new(open(Path::new(path))).name("the killed one").on_blocking("fetch", |job| {
            tell(&format!("start {}", job.job_id));
            if job.job_id == "job-12" {
                // Here the parent kills.
                std::thread::sleep(Duration::from_secs(600));
            }
            Ok::<(), ReplayError>(())
        });
        runner.run_blocking(op_id).unwrap();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = open(&path);
    for job in 0..JOBS {
        park(&store, &format!("job-{job:02}"));
    }
    let op = begin(&store);
    assert_eq!(op.counts.total(), u64::from(JOBS));
    park(&store, "later");
    let mut of_job = Filter::all();
    of_job.job_ids.push("job-20".into());
    let discarded = block_on(store.list(of_job, retry_runtime::dead_letter::PageRequest::default())).unwrap();
    block_on(store.discard(discarded.rows[0].letter_id.clone(), ada())).unwrap();
    store.close(Duration::from_secs(10));

    let work = format!("{}|{}", path.display(), op.id);
    let mut process = child(&[], "a_killed_run_is_taken_up_and_adds_up", &work).spawn().unwrap();
    let started: Vec<String> = told(&mut process).take_while(|line| line != "start job-12").collect();
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(started.len(), 12, "{started:?}");

    // At once it is still the killed one's.
    let store = open(&path);
    let found = block_on(store.operation(op.id.clone())).unwrap().unwrap();
    assert_eq!((found.status, found.runner.as_deref()), (OperationStatus::Running, Some("the killed one")));
    assert_eq!((found.counts.get(ItemOutcome::Recovered), found.counts.running()), (12, 1));
    let refused = OperationRunner::new(store.clone()).run_blocking(&op.id).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Conflict);
    store.close(Duration::from_secs(10));

    let time = ManualClock::new(SystemTime::now() + Duration::from_secs(3_600));
    let store = SqliteStore::options(&path).clock(time.clock()).reserve(false).open().unwrap();
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&jobs);
    let runner = OperationRunner::new(store.clone()).on_blocking("fetch", move |job| {
        seen.lock().unwrap().push(job.job_id);
        Ok::<(), ReplayError>(())
    });
    let done = runner.run_blocking(&op.id).unwrap();
    assert_eq!((done.status, done.note.as_deref()), (OperationStatus::Done, None));
    assert_eq!(counts(&done), BTreeMap::from([("changed", 1), ("recovered", 29)]));
    let jobs = jobs.lock().unwrap();
    assert_eq!(jobs.len(), 17, "{jobs:?}");
    assert!(jobs.contains(&"job-12".to_owned()) && !jobs.contains(&"later".to_owned()));
    let recoveries = recoveries(&path, &op.id);
    assert_eq!(recoveries.len(), 29);
    assert!(recoveries.values().all(|n| *n == 1), "{recoveries:?}");
    let later = block_on(store.count(Filter::parked())).unwrap();
    assert_eq!(later, 1);
    let crashes: i64 =
        Connection::open(&path).unwrap().query_row("SELECT sum(crashes) FROM letter", [], |row| row.get(0)).unwrap();
    assert_eq!(crashes, 1);
    store.close(Duration::from_secs(10));
    assert_intact(&path);
}

// An orderly shutdown of the program: the store is closed, and the next one goes on at once.
#[test]
fn a_dropped_run_is_taken_up_at_once_after_the_file_was_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = open(&path);
    for job in 0..5 {
        park(&store, &format!("job-{job:02}"));
    }
    let op = begin(&store);
    let (sender, receiver) = std::sync::mpsc::channel();
    let runner = OperationRunner::new(store.clone()).on("fetch", move |job| {
        let sender = sender.clone();
        async move {
            if job.job_id == "job-02" {
                sender.send(()).unwrap();
                std::future::pending::<()>().await;
            }
            Ok::<(), ReplayError>(())
        }
    });
    block_on(async {
        let mut run = Box::pin(runner.run(&op.id));
        std::future::poll_fn(|cx| {
            assert!(run.as_mut().poll(cx).is_pending());
            if receiver.try_recv().is_ok() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    });
    drop(runner);
    store.close(Duration::from_secs(10));
    drop(store);
    let store = open(&path);
    let found = block_on(store.operation(op.id.clone())).unwrap().unwrap();
    assert_eq!((found.status, found.counts.pending(), found.counts.running()), (OperationStatus::Pending, 3, 0));
    let done = OperationRunner::new(store.clone()).on_blocking("fetch", |_| Ok::<(), ReplayError>(()));
    assert_eq!(counts(&done.run_blocking(&op.id).unwrap()), BTreeMap::from([("recovered", 5)]));
    let mut replaying = Filter::all();
    replaying.states.push(LetterState::Replaying);
    assert_eq!(block_on(store.count(replaying)).unwrap(), 0);
    store.close(Duration::from_secs(10));
    assert_intact(&path);
}

// D21, S7: a program that knows no operations shares the file, and ends replays of members.
#[test]
fn replays_that_another_program_ends_do_not_hold_the_operation() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = open(&path);
    for job in 0..3 {
        park(&store, &format!("job-{job:02}"));
    }
    let op = begin(&store);
    let minute = Duration::from_secs(60);
    let ticket = block_on(store.take(op.id.clone(), "ada".into(), minute, false, ada())).unwrap().ticket();
    let mut claim = MemberClaim::new(["fetch"], "ada");
    claim.limit = 3;
    let next = || block_on(store.claim_members(ticket.clone(), claim.clone(), ada())).unwrap();
    assert_eq!(next().claimed.len(), 3);
    // One is taken back, one is done; the third goes on here.
    let ended = "UPDATE letter SET owner = NULL, lease_until = NULL, state = 'parked' WHERE job_id = 'job-00';
        UPDATE letter SET owner = NULL, lease_until = NULL, state = 'recovered', closed_at = 1, closed_by = 'old',
            closed_reason = 'recovered' WHERE job_id = 'job-01'";
    Connection::open(&path).unwrap().execute_batch(ended).unwrap();
    let found = next();
    let jobs: Vec<_> = found.claimed.iter().map(|claimed| claimed.row.job_id.as_str()).collect();
    assert_eq!(jobs, ["job-00"]);
    assert_eq!(counts(&found.operation), BTreeMap::from([("changed", 1), ("running", 2)]));
    store.close(Duration::from_secs(10));
    assert_intact(&path);
}

// D24, B41: a plan opens no connection that writes.
#[test]
fn a_plan_needs_no_right_to_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = open(&path);
    park(&store, "job-0");
    store.close(Duration::from_secs(10));
    let store = SqliteStore::options(&path).open_read_only().unwrap();
    let request = OperationRequest::new(Verb::Replay, Filter::all());
    let plan = block_on(store.plan(request.clone())).unwrap();
    assert_eq!((plan.matched, plan.sample.len()), (1, 1));
    let refused = block_on(store.start(request, ada())).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::ReadOnly);
    assert_eq!(block_on(store.operations(None, 10)).unwrap(), []);
}
