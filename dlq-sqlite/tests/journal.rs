//! The journal over files (STORE D14): what a process leaves behind, and what becomes of it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::path::Path;
use std::time::{Duration, SystemTime};

use dlq_sqlite::{SqliteOptions, SqliteStore};
use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, Checkup, DeadLetterSink, DeadLetterStore, Doctor, Filter, JobEnd, JobJournal, LetterDetail, ManualClock,
    OWNER_LEASE, PageRequest, Payload, Redactor, StoreClock, Struck,
};
use retry_runtime::testing::conformance;
use support::{letter, wait};

fn options(path: &Path, clock: StoreClock) -> SqliteOptions {
    SqliteStore::options(path).clock(clock).reserve(false)
}

#[test]
fn the_store_keeps_the_rules_of_journals() {
    let directory = tempfile::tempdir().unwrap();
    let mut made = 0;
    conformance::journal(|clock| {
        made += 1;
        let path = directory.path().join(format!("{made}/jobs.db"));
        // the first of them makes the file
        let second = options(&path, clock.clone()).open().unwrap();
        (options(&path, clock).open().unwrap(), second)
    })
    .assert_passed();
}

/// The letter of the only job, once its process is dead.
async fn crashed(store: &SqliteStore) -> LetterDetail {
    let reaped = store.reap(Actor::new("test", "")).await.unwrap();
    let [row] = reaped.as_slice() else { panic!("{reaped:?}") };
    assert_eq!(row.reason, StopReason::Crashed);
    store.get(row.letter_id.clone()).await.unwrap().unwrap()
}

async fn answered<T, E: std::fmt::Debug>(reply: retry_runtime::reply::Reply<Result<T, E>>) -> T {
    reply.await.unwrap()
}

// D9: an entry is redacted as a letter is, and its letter says so
#[tokio::test]
async fn what_a_rule_altered_comes_back_altered() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let redacted = options(&path, StoreClock::system()).redact_payloads(Redactor::standard()).open().unwrap();
    let mut job = letter("a");
    job.payload = Payload::Json(r#"{"password":"hunter2"}"#.into());
    answered(redacted.enter(job)).await;
    let stored: Vec<u8> = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT bytes FROM journal", [], |row| row.get(0))
        .unwrap();
    assert!(!String::from_utf8(stored).unwrap().contains("hunter2"));
    drop(redacted);
    let detail = crashed(&options(&path, StoreClock::system()).open().unwrap()).await;
    assert!(detail.row.payload_altered);
    assert!(matches!(detail.payload, Payload::Json(json) if json.contains("password") && !json.contains("hunter2")));
}

// 11.5: and so does one that could not be serialised
#[tokio::test]
async fn what_could_not_be_serialised_says_so_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    for payload in [Payload::Unserializable("no keys".into()), Payload::None] {
        let store = options(&path, StoreClock::system()).open().unwrap();
        let mut job = letter("a");
        job.job_id = None;
        job.payload = payload.clone();
        answered(store.enter(job)).await;
        drop(store);
        let detail = crashed(&options(&path, StoreClock::system()).open().unwrap()).await;
        assert_eq!(detail.payload, payload);
    }
}

// a payload in a file is kept as long as the entry names it, and goes over to the letter
#[tokio::test]
async fn a_payload_in_a_file_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = options(&path, StoreClock::system()).payload_file_above(1_000).open().unwrap();
    let mut job = letter("a");
    let letter_of = |n: u32| char::from(b"abcdefghijklmnop"[(n.wrapping_mul(2_654_435_761) >> 28) as usize]);
    let noise: String = (0..300_000).map(letter_of).collect();
    job.payload = Payload::Json(format!("\"{noise}\""));
    answered(store.enter(job.clone())).await;
    drop(store);
    let named: Option<String> =
        rusqlite::Connection::open(&path).unwrap().query_row("SELECT blob FROM journal", [], |row| row.get(0)).unwrap();
    assert!(named.is_some());
    let detail = crashed(&options(&path, StoreClock::system()).open().unwrap()).await;
    assert_eq!(detail.payload, job.payload);
}

// D14: leases belong to the process, and the store's thread renews them
#[tokio::test]
async fn a_process_that_lives_keeps_its_jobs_however_long_they_take() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let time = ManualClock::new(SystemTime::now());
    let store = options(&path, time.clock()).open().unwrap();
    let other = options(&path, time.clock()).open().unwrap();
    let job = letter("a");
    answered(store.enter(job.clone())).await;
    for _ in 0..10 {
        time.advance(OWNER_LEASE / 2);
        // what the thread does whenever it wakes; here it is woken by hand, since the clock is
        store.settle().await;
        assert!(other.reap(Actor::new("test", "")).await.unwrap().is_empty());
    }
    assert_eq!(answered(store.strike(job.park_id, JobEnd::Succeeded)).await, Struck::Removed);
    // an owner without jobs is none
    time.advance(OWNER_LEASE / 2);
    store.settle().await;
    let owners: u32 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM owner", [], |row| row.get(0))
        .unwrap();
    assert_eq!(owners, 0);
}

// what nobody takes back is owed, and the doctor says so
#[tokio::test]
async fn what_is_not_taken_back_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let time = ManualClock::new(SystemTime::now());
    let store = options(&path, time.clock()).open().unwrap();
    answered(store.enter(letter("a"))).await;
    let reader = options(&path, time.clock()).open_read_only().unwrap();
    let codes = || async {
        let found = reader.doctor(Checkup::quick()).await.unwrap();
        found.iter().any(|finding| finding.code == "journal_orphans")
    };
    assert!(reader.summary().await.unwrap().is_clean(), "a job under way is not owed");
    drop(store);
    assert_eq!(reader.summary().await.unwrap().orphaned, 1);
    assert!(!codes().await, "somebody may be about to take it");
    time.advance(Duration::from_secs(300));
    assert!(codes().await);
}

// D14: a job that ended while the store was down is struck out when it works again
#[tokio::test]
async fn what_could_not_be_struck_out_is_struck_out_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let time = ManualClock::new(SystemTime::now());
    let store = options(&path, time.clock()).busy_limit(Duration::from_millis(50)).open().unwrap();
    let job = letter("a");
    answered(store.enter(job.clone())).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(store.strike(job.park_id, JobEnd::Succeeded).await.is_err());
    other.execute_batch("ROLLBACK").unwrap();
    time.advance(Duration::from_secs(5));
    store.settle().await;
    let counts = store.journalled().await.unwrap();
    assert_eq!((counts.running, counts.orphaned), (0, 0));
    drop(store);
    time.advance(OWNER_LEASE * 2);
    let store = options(&path, time.clock()).open().unwrap();
    assert!(store.reap(Actor::new("test", "")).await.unwrap().is_empty());
}

// D15: without anybody's asking, once the grace is over
#[tokio::test]
async fn the_next_start_parks_what_the_last_one_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = options(&path, StoreClock::system()).open().unwrap();
    answered(store.enter(letter("a"))).await;
    drop(store);
    let store = options(&path, StoreClock::system()).reap_after(Duration::ZERO).open().unwrap();
    while store.count(Filter::parked()).await.unwrap() == 0 {
        store.settle().await;
    }
    let row = store.list(Filter::all(), PageRequest::default()).await.unwrap().rows.remove(0);
    assert_eq!((row.reason, row.error_class.as_str(), row.attempts), (StopReason::Crashed, "crashed", 1));
    assert!(row.error_message.contains("ended while it ran this job"), "{}", row.error_message);
    let counts = store.journalled().await.unwrap();
    assert_eq!((counts.running, counts.orphaned), (0, 0), "parked and no longer under way");
}

// D14: a lease ends when it ends. Each process has a clock of its own here, so that the first one cannot renew in time.
#[tokio::test]
async fn a_silent_process_is_taken_for_dead_after_its_lease_and_not_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let start = SystemTime::now();
    let (stopped, time) = (ManualClock::new(start), ManualClock::new(start));
    let store = options(&path, stopped.clock()).open().unwrap();
    let other = options(&path, time.clock()).open().unwrap();
    answered(store.enter(letter("a"))).await;
    let actor = || Actor::new("test", "");
    time.advance(OWNER_LEASE.saturating_sub(Duration::from_secs(1)));
    assert!(other.reap(actor()).await.unwrap().is_empty(), "a second before the end of the lease");
    assert_eq!(other.journalled().await.unwrap().running, 1);
    time.advance(Duration::from_secs(2));
    assert_eq!(other.reap(actor()).await.unwrap().len(), 1, "a second after it");
}

// D14, D1: a letter that went to the spill takes its entry with it when it comes home
#[tokio::test]
async fn a_spilled_letter_takes_its_entry_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let time = ManualClock::new(SystemTime::now());
    let store = options(&path, time.clock()).busy_limit(Duration::from_millis(50)).open().unwrap();
    let job = letter("a");
    answered(store.enter(job.clone())).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(wait(store.submit(job)).to_string().contains("spilled"));
    other.execute_batch("ROLLBACK").unwrap();
    for _ in 0..3 {
        time.advance(Duration::from_secs(10));
        store.settle().await;
    }
    assert_eq!(store.journalled().await.unwrap().running, 0);
    let rows = store.list(Filter::all(), PageRequest::default()).await.unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.reason).collect::<Vec<_>>(), [StopReason::Exhausted]);
}

// D14, D8: a process that was taken for dead and only could not write: what it spilled is the truth, however late it comes
#[tokio::test]
async fn a_spilled_letter_takes_the_place_of_the_crash() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let time = ManualClock::new(SystemTime::now());
    let store = options(&path, time.clock()).busy_limit(Duration::from_millis(50)).open().unwrap();
    let other = options(&path, time.clock()).open().unwrap();
    let mut job = letter("a");
    answered(store.enter(job.clone())).await;
    let lock = rusqlite::Connection::open(&path).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    (job.class, job.code, job.attempts) = (Some("forbidden".into()), Some(403), 3);
    job.not_before = Some(time.now() + Duration::from_secs(86_400));
    assert!(wait(store.submit(job.clone())).to_string().contains("spilled"));
    time.advance(OWNER_LEASE * 2);
    lock.execute_batch("ROLLBACK").unwrap();
    assert_eq!(other.reap(Actor::new("test", "")).await.unwrap().len(), 1);
    for _ in 0..3 {
        time.advance(Duration::from_secs(10));
        store.settle().await;
    }
    let rows = other.list(Filter::all(), PageRequest::default()).await.unwrap().rows;
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((row.reason, row.error_class.as_str()), (StopReason::Exhausted, "exhausted:403"));
    assert_eq!((row.parkings, row.attempts), (1, 3));
    assert!(row.not_before > Some(time.now() + Duration::from_secs(80_000)));
    let origin: String = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT reason || ' ' || origin FROM parking", [], |row| row.get(0))
        .unwrap();
    assert_eq!(origin, "exhausted spill");
}
