//! What retention leaves in the file, and what it does by itself.
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking

mod support;

use std::path::Path;
use std::time::{Duration, SystemTime};

use dlq_sqlite::{SqliteOptions, SqliteStore};
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Filter, Finish, KindRetention, ManualClock,
    Payload, PruneRequest, ReplayOutcome, Retention, StoreAdmin,
};
use support::{letter, wait};

const DAY: Duration = Duration::from_secs(86_400);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn actor() -> Actor {
    Actor::new("ann", "spring cleaning")
}

fn at(path: &Path, time: &ManualClock) -> SqliteOptions {
    SqliteStore::options(path).clock(time.clock()).reserve(false)
}

fn recovered(store: &SqliteStore, letter: DeadLetter) -> String {
    assert!(wait(store.submit(letter)).is_kept());
    let claimed = block_on(store.claim(ClaimRequest::new(["fetch"], "w"), actor())).unwrap().pop().unwrap();
    let result = Finish::new(claimed.row.letter_id.clone(), claimed.row.fence, ReplayOutcome::Recovered);
    block_on(store.finish(result, actor())).unwrap();
    claimed.row.letter_id
}

fn one<T: rusqlite::types::FromSql>(path: &Path, sql: &str) -> T {
    let reader = rusqlite::Connection::open(path).unwrap();
    reader.query_row(sql, [], |row| row.get(0)).unwrap()
}

// A1, D10, S6: counted by day, payloads with it, space given back, tombstones kept
#[test]
fn a_pruned_letter_leaves_its_count_and_its_parking() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let time = ManualClock::new(SystemTime::now());
    let store = at(&path, &time).payload_file_above(0).open().unwrap();
    let mut large = letter("large");
    large.payload = Payload::Json(format!("\"{}\"", "x".repeat(100_000)));
    let parking = large.clone();
    let id = recovered(&store, large);
    for n in 0..50 {
        let mut inline = letter(&n.to_string());
        inline.payload = Payload::Json(format!("\"{}\"", "y".repeat(60_000)));
        recovered(&store, inline);
    }
    assert!(wait(store.submit(letter("owed"))).is_kept());
    let files = || {
        std::fs::read_dir(directory.path().join("jobs.db.blobs"))
            .unwrap()
            .flat_map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap())
            .count()
    };
    assert_eq!(files(), 1);
    let pages: i64 = one(&path, "PRAGMA page_count");
    time.advance(31 * DAY);
    let report = block_on(store.prune(PruneRequest::new(Retention::default()), actor())).unwrap();
    assert_eq!((report.total(), report.payload_files, files()), (51, 1, 0));
    let left: i64 = one(&path, "PRAGMA page_count");
    let free: i64 = one(&path, "PRAGMA freelist_count");
    assert!(left < pages / 4, "the space is given back: {left} of {pages} pages, {free} of them free");
    assert_eq!(one::<i64>(&path, "SELECT sum(n) FROM pruned WHERE state = 'recovered' AND kind = 'fetch'"), 51);
    let day: String = one(&path, "SELECT day FROM pruned");
    assert_eq!(day, retry_runtime::counters::Day::of(time.now()).to_string());
    assert_eq!(
        one::<String>(&path, "SELECT actor || ': ' || reason FROM event WHERE what = 'pruned'"),
        "ann: spring cleaning"
    );
    for (table, left) in [("letter", 1), ("payload", 1), ("attempt", 3), ("parking", 52)] {
        assert_eq!(one::<i64>(&path, &format!("SELECT count(*) FROM {table}")), left, "{table}");
    }
    assert_eq!(one::<i64>(&path, "SELECT count(*) FROM event WHERE seq IS NOT NULL"), 1);
    // D1
    let again = wait(store.submit(parking));
    assert!(matches!(&again, retry_runtime::dead_letter::Parking::Parked { letter_id } if *letter_id == id), "{again}");
    assert_eq!(block_on(store.count(Filter::all())).unwrap(), 1);
    store.close(Duration::from_secs(10));
}

// Letters of other scopes are another's.
#[test]
fn each_scope_is_pruned_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let time = ManualClock::new(SystemTime::now());
    let first = at(&path, &time).open().unwrap();
    let second = at(&path, &time).scope("second").open().unwrap();
    recovered(&first, letter("a"));
    recovered(&second, letter("a"));
    time.advance(DAY);
    assert_eq!(block_on(second.due_within(Retention::all(DAY), Duration::ZERO)).unwrap().total(), 1);
    assert_eq!(block_on(second.prune(PruneRequest::older_than(DAY), actor())).unwrap().total(), 1);
    assert_eq!(block_on(first.count(Filter::all())).unwrap(), 1);
    assert_eq!(block_on(second.count(Filter::all())).unwrap(), 0);
}

fn settle(store: &SqliteStore) {
    block_on(async { store.settle().await });
}

// Nothing is deleted by default; where it is, it was announced a day before.
#[test]
fn retention_by_itself_is_asked_for_and_announced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let time = ManualClock::new(SystemTime::now());
    let store = at(&path, &time).open().unwrap();
    recovered(&store, letter("a"));
    time.advance(1_000 * DAY);
    settle(&store);
    let count = |store: &SqliteStore| block_on(store.count(Filter::all())).unwrap();
    assert_eq!(count(&store), 1, "nobody asked for it");
    drop(store);

    let retention = Retention::default().kind("kept", KindRetention::forever());
    let store = at(&path, &time).retention(retention.clone()).open().unwrap();
    settle(&store);
    time.advance(DAY.checked_sub(Duration::from_secs(1)).unwrap());
    settle(&store);
    assert_eq!(count(&store), 1, "first it is announced");
    // Also over a restart.
    drop(store);
    let store = at(&path, &time).retention(retention).open().unwrap();
    settle(&store);
    assert_eq!(count(&store), 1);
    time.advance(Duration::from_secs(1));
    // Came of age after the announcement.
    recovered(&store, letter("b"));
    settle(&store);
    assert_eq!(count(&store), 1, "what was announced is deleted");
    assert_eq!(one::<i64>(&path, "SELECT count(*) FROM event WHERE what = 'pruned' AND actor = 'store'"), 1);
    // A process that slept for long announces first what has come of age meanwhile.
    time.advance(100 * DAY);
    settle(&store);
    assert_eq!(count(&store), 1, "it was not announced");
    time.advance(DAY);
    settle(&store);
    assert_eq!(count(&store), 0);
    drop(store);

    // Another retention is another announcement.
    let store = at(&path, &time).retention(Retention::all(Duration::ZERO)).open().unwrap();
    recovered(&store, letter("c"));
    settle(&store);
    assert_eq!(count(&store), 1);
    time.advance(DAY);
    settle(&store);
    assert_eq!(count(&store), 0);
    drop(store);
    assert_eq!(one::<String>(&path, "PRAGMA integrity_check"), "ok");
}
