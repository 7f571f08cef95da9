//! From opening to closing: what a store shows, what it keeps, and how it ends.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use dlq_sqlite::{OpenError, SqliteStore};
use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetterSink, DeadLetterStore, Filter, LetterState, ManualClock, Parking, Payload,
    from_millis,
};
use retry_runtime::error::StoreErrorKind;
use retry_runtime::ledger::{AttemptLedger, LedgerKey};
use rusqlite::Connection;
use support::{SmallDisk, letter, parkings, spilled, wait};

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    (directory, path)
}

fn open(path: &PathBuf) -> SqliteStore {
    SqliteStore::options(path).reserve(false).open().unwrap()
}

fn me() -> Actor {
    Actor::new("test", "")
}

fn claim_one(lease: u64) -> ClaimRequest {
    let mut request = ClaimRequest::new(["fetch"], "worker");
    request.lease = Duration::from_secs(lease);
    request.keep_alive = true;
    request
}

#[track_caller]
fn assert_parked(parking: &Parking) {
    assert!(matches!(parking, Parking::Parked { .. }), "{parking}");
}

/// A row of the view, as a tool of any language sees it.
fn view(path: &PathBuf) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let sql = "SELECT job_id || '|' || kind || '|' || payload_json || '|' || model || '|' || error_class || '|' ||
                 error_message || '|' || attempts || '|' || status || '|' || first_seen || '|' || last_seen
               FROM dead_letter";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

// B1.6, B1.7, CONTRACT 5
#[test]
fn the_view_shows_one_row_with_everything() {
    let (_directory, path) = fresh();
    let store = open(&path);
    let mut first = letter("job-1");
    first.payload = Payload::Json("{\"prompt\":\"hi\"}".into());
    first.failed_at = from_millis(1_700_000_000_500);
    first.first_failed_at = from_millis(1_700_000_000_250);
    assert_parked(&wait(store.submit(first.clone())));
    let row = "job-1|fetch|{\"prompt\":\"hi\"}|gemini-pro|exhausted:429|429 Too Many Requests: quota \
               exceeded|3|parked|1700000000.25|1700000000.5";
    assert_eq!(view(&path), [row]);

    let mut second = letter("job-1");
    second.payload = first.payload;
    second.reason = StopReason::Permanent;
    second.code = Some(403);
    second.error_message = "forbidden".into();
    second.attempts = 1;
    second.failed_at = from_millis(1_700_000_060_000);
    second.first_failed_at = second.failed_at;
    assert_parked(&wait(store.submit(second)));
    let row = "job-1|fetch|{\"prompt\":\"hi\"}|gemini-pro|permanent:403|forbidden|4|parked|1700000000.25|1700000060.0";
    assert_eq!(view(&path), [row]);
}

// CONTRACT 5: the other two views
#[test]
fn the_views_of_ledger_and_counters_show_what_was_written() {
    use retry_runtime::counters::DailyCounters;
    let (_directory, path) = fresh();
    let time = ManualClock::new(from_millis(1_709_164_800_500));
    let store = SqliteStore::options(&path).clock(time.clock()).reserve(false).open().unwrap();
    let limit = Duration::from_secs(60);
    assert!(store.begin(LedgerKey::new("archive", "u1"), 3).wait(limit).unwrap().is_ok());
    assert!(store.add("archive", "worker_ok", 7).wait(limit).unwrap().is_ok());
    let connection = Connection::open(&path).unwrap();
    let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(
        text("SELECT key||'|'||scope||'|'||status||'|'||attempts||'|'||first_seen FROM attempt_ledger"),
        "u1|archive|open|1|1709164800.5"
    );
    assert_eq!(
        text("SELECT day||'|'||operation||'|'||counter||'|'||value FROM daily_stats"),
        "2024-02-29|archive|worker_ok|7"
    );
}

// D24
#[test]
fn every_file_is_for_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/dir/jobs.db");
    let store = SqliteStore::open(&path).unwrap();
    assert_parked(&wait(store.submit(letter("a"))));
    assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    store.close(Duration::from_secs(60));
    assert!(matches!(wait(store.submit(letter("b"))), Parking::Spilled { .. }));
    let mut seen = 0;
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", entry.path().display());
        seen += 1;
    }
    assert!(seen >= 4, "database, lock, reserve and spill: {seen}");
    for directory in [directory.path().join("new"), directory.path().join("new/dir")] {
        assert_eq!(std::fs::metadata(directory).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

// D24
#[test]
fn a_store_opened_for_reading_creates_and_changes_nothing() {
    let (directory, path) = fresh();
    assert!(matches!(SqliteStore::options(&path).open_read_only(), Err(OpenError::Missing(_))));
    assert!(matches!(SqliteStore::options(&path).create(false).open(), Err(OpenError::Missing(_))));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let store = open(&path);
    assert_parked(&wait(store.submit(letter("a"))));
    store.close(Duration::from_secs(60));

    let time = ManualClock::new(SystemTime::now());
    let reader = SqliteStore::options(&path).clock(time.clock()).open_read_only().unwrap();
    assert_eq!(block(reader.count(Filter::parked())).unwrap(), 1);
    let refused = block(reader.claim(claim_one(60), me())).err().unwrap();
    assert_eq!(refused.kind(), StoreErrorKind::ReadOnly, "{refused}");
    // However long it waits, it does not begin to write.
    time.advance(Duration::from_secs(60));
    assert!(reader.settle().wait(Duration::from_secs(60)).is_ok());
    assert_eq!(block(reader.reap(me())).err().unwrap().kind(), StoreErrorKind::ReadOnly);
    // A letter has somewhere to go all the same.
    assert!(matches!(wait(reader.submit(letter("b"))), Parking::Spilled { .. }));
    drop(reader);
    assert_eq!((parkings(&path).len(), spilled(&[directory.path()]).len()), (1, 1));
}

// S7: an older program that meets a newer file that it cannot read never fails the job
#[test]
fn a_file_that_is_too_new_is_left_alone_and_letters_are_spilled() {
    let (directory, path) = fresh();
    open(&path).close(Duration::from_secs(60));
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 99; UPDATE meta SET value = 99 WHERE key = 'min_reader_version'")
        .unwrap();
    let store = open(&path);
    assert!(store.is_down());
    assert!(matches!(wait(store.submit(letter("a"))), Parking::Spilled { .. }));
    assert_eq!((parkings(&path).len(), spilled(&[directory.path()]).len()), (0, 1));
}

#[test]
fn another_programs_file_is_refused() {
    let (_directory, path) = fresh();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    let error = SqliteStore::open(&path).err().unwrap();
    assert!(matches!(error, OpenError::Foreign { .. }));
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

// D5: what was handed over is written, whoever waits for it
#[test]
fn the_last_handle_writes_what_was_handed_over() {
    let (_directory, path) = fresh();
    let store = open(&path);
    let other = store.clone();
    for n in 0..500 {
        drop(store.submit(letter(&n.to_string())));
    }
    drop(store);
    drop(other);
    assert_eq!(parkings(&path).len(), 500);
}

// D5: closing drains, spills the rest, and refuses what comes later
#[test]
fn what_cannot_be_written_in_time_is_spilled() {
    let (directory, path) = fresh();
    let store = open(&path);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let tickets: Vec<_> = (0..20).map(|n| store.submit(letter(&n.to_string()))).collect();
    store.close(Duration::from_millis(50));
    for ticket in tickets {
        assert!(matches!(wait(ticket), Parking::Spilled { .. }));
    }
    match wait(store.submit(letter("late"))) {
        Parking::Spilled { because, .. } => assert_eq!(because.kind(), StoreErrorKind::Closed),
        other => panic!("{other}"),
    }
    assert_eq!(spilled(&[directory.path()]).len(), 21);
    assert_eq!(block(store.count(Filter::all())).err().unwrap().kind(), StoreErrorKind::Closed);
    assert_eq!(block(store.claim(claim_one(60), me())).err().unwrap().kind(), StoreErrorKind::Closed);
    drop(other);
    drop(store);
    let store = open(&path);
    assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    assert_eq!((parkings(&path).len(), spilled(&[directory.path()]).len()), (21, 0));
}

// D5: handing over never blocks; beyond the bound it is counted
#[test]
fn a_long_queue_is_taken_and_counted() {
    let (_directory, path) = fresh();
    let store = SqliteStore::options(&path).reserve(false).busy_limit(Duration::from_secs(60)).open().unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = Instant::now();
    for n in 0..11_000 {
        let mut letter = letter(&n.to_string());
        letter.payload = Payload::None;
        letter.history.clear();
        drop(store.submit(letter));
    }
    assert!(start.elapsed() < Duration::from_secs(20), "somebody was held up: {:?}", start.elapsed());
    let (waiting, overflowed) = store.backlog();
    assert!(waiting > 10_000 && overflowed > 0, "{waiting} {overflowed}");
    other.execute_batch("ROLLBACK").unwrap();
    store.close(Duration::from_secs(120));
    assert_eq!(parkings(&path).len(), 11_000);
}

// D15: the store's own thread extends the lease in the file, also while the handler blocks
#[test]
fn another_process_sees_the_extended_lease() {
    let (_directory, path) = fresh();
    let time = ManualClock::new(SystemTime::now());
    let worker = SqliteStore::options(&path).clock(time.clock()).reserve(false).open().unwrap();
    let other = SqliteStore::options(&path).clock(time.clock()).reserve(false).open().unwrap();
    assert_parked(&wait(worker.submit(letter("a"))));
    assert_eq!(block(worker.claim(claim_one(60), me())).unwrap().len(), 1);
    for _ in 0..10 {
        time.advance(Duration::from_secs(25));
        assert!(worker.settle().wait(Duration::from_secs(60)).is_ok());
        assert!(block(other.reap(me())).unwrap().is_empty());
    }
    // The process stops: nobody extends it any more.
    time.advance(Duration::from_secs(61));
    let reaped = block(other.reap(me())).unwrap();
    assert_eq!((reaped.len(), reaped[0].crashes, reaped[0].replays), (1, 1, 0));
}

// S4: two replayers never get the same letter
#[test]
fn stores_that_claim_at_once_share_the_letters() {
    let (_directory, path) = fresh();
    let store = open(&path);
    for n in 0..40 {
        assert_parked(&wait(store.submit(letter(&n.to_string()))));
    }
    let stores: Vec<_> = (0..4).map(|_| open(&path)).collect();
    let mut claimed = std::thread::scope(|scope| {
        let threads: Vec<_> = stores
            .iter()
            .map(|store| {
                scope.spawn(|| {
                    let mut ids = Vec::new();
                    while let Some(claimed) = block(store.claim(claim_one(600), me())).unwrap().pop() {
                        ids.push(claimed.row.letter_id);
                    }
                    ids
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(claimed.len(), 40);
    claimed.sort();
    claimed.dedup();
    assert_eq!(claimed.len(), 40, "a letter was handed out twice");
}

// D13: an orderly end releases its leases and counts neither a replay nor a crash
#[test]
fn closing_gives_the_leases_back() {
    let (_directory, path) = fresh();
    let store = open(&path);
    assert_parked(&wait(store.submit(letter("a"))));
    let claimed = block(store.claim(claim_one(3_600), me())).unwrap();
    drop(store);
    let store = open(&path);
    let row = block(store.get(claimed[0].row.letter_id.clone())).unwrap().unwrap().row;
    assert_eq!((row.state, row.replays, row.crashes), (LetterState::Parked, 0, 0));
}

// D15: after the grace, without anybody claiming
#[test]
fn expired_leases_are_taken_back_by_themselves() {
    let (_directory, path) = fresh();
    let store = open(&path);
    assert_parked(&wait(store.submit(letter("a"))));
    Connection::open(&path)
        .unwrap()
        .execute_batch("UPDATE letter SET state = 'replaying', owner = 'gone', lease_until = 1, fence = 1")
        .unwrap();
    let reaping = SqliteStore::options(&path).reserve(false).reap_after(Duration::ZERO).open().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while block(reaping.count(Filter::parked())).unwrap() == 0 {
        assert!(Instant::now() < end, "nobody took the lease back");
        std::thread::yield_now();
    }
}

// D8: the reserve is freed on a full disk, for the last letters
#[test]
fn the_reserve_makes_room_for_the_last_letters() {
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().join("disk");
    let Some(_mounted) = SmallDisk::mount(&disk, "6m") else { return };
    let path = disk.join("jobs.db");
    let store = SqliteStore::open(&path).unwrap();
    assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    let reserve = disk.join("jobs.db.reserve");
    assert_eq!(std::fs::metadata(&reserve).unwrap().len(), 4 << 20);
    let mut filler = std::fs::File::create(disk.join("filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[1; 4096]).is_ok() {}
    for n in 0..50 {
        assert_parked(&wait(store.submit(letter(&n.to_string()))));
    }
    assert!(!reserve.exists(), "the fault has to bite");
    assert_eq!(parkings(&path).len(), 50);
    drop(store);
}
