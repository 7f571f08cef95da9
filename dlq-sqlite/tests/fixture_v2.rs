//! A file of schema 2 with its payload file, made once and opened for ever: every later version has to read it, and go on
//! with it (STORE D23). That of schema 1 is looked at by a test of the whole workspace.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::counters::{Day, Thresholds};
use retry_runtime::dead_letter::{
    Actor, BulkOperations, Checkup, ClaimRequest, DeadLetterStore, Doctor, Filter, Finding, LetterRow, LetterState,
    ManualClock, PageRequest, Payload, Severity, Steer, from_millis,
};
use retry_runtime::ledger::{LedgerBooks, LedgerQuery, LedgerStatus};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures");

/// When the file was made: 2026-01-02 03:04:05.006 UTC.
const MADE: i64 = 1_767_323_045_006;

const BLOB: &str = "store-v2.db.blobs/87/8745ffbb6084c2ed7be1faa4b1f8947c4766e7c90ef95b8cbf6baf0b7076aa7b";

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A copy: opening leaves traces beside the file, and the original must never change.
fn copy() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    for name in ["store-v2.db", BLOB] {
        let to = directory.path().join(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(Path::new(FIXTURES).join(name), &to).unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&to, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    let path = directory.path().join("store-v2.db");
    (directory, path)
}

fn rows(store: &SqliteStore) -> BTreeMap<String, LetterRow> {
    let page = block(store.list(Filter::all(), PageRequest::default())).unwrap();
    page.rows.into_iter().map(|row| (row.job_id.clone(), row)).collect()
}

fn assert_whole(store: &SqliteStore) {
    let rows = rows(store);
    let states: BTreeMap<&str, &str> = rows.iter().map(|(job, row)| (job.as_str(), row.state.as_str())).collect();
    let expected = [
        ("019b7ca9-8c8e-7000-8000-000000000007", "parked"),
        ("abandoned", "abandoned"),
        ("by hand", "discarded"),
        ("edited", "parked"),
        ("frozen", "parked"),
        ("gone", "discarded"),
        ("hinted", "parked"),
        ("large", "parked"),
        ("merged", "parked"),
        ("parked", "parked"),
        ("recovered", "recovered"),
        ("replaying", "replaying"),
        ("resolved", "recovered"),
        ("restored", "parked"),
    ];
    assert_eq!(states, BTreeMap::from(expected));
    let get = |job: &str| block(store.get(rows[job].letter_id.clone())).unwrap().unwrap();

    // Its payload is compressed, and in a file of its own.
    assert_eq!(get("large").payload, Payload::Json(format!("\"{}\"", "large ".repeat(20_000))));
    let edited = get("edited");
    assert_eq!(edited.payload, Payload::Json("{\"id\":\"edited by hand\"}".into()));
    let revisions = block(store.revisions(edited.row.letter_id.clone())).unwrap();
    assert_eq!(revisions.len(), 2);
    assert_eq!((rows["restored"].max_replays, rows["abandoned"].replays), (7, 5));
    assert_eq!(get("abandoned").history.len(), 7);

    let operation = block(store.operations(None, 10)).unwrap().pop().unwrap();
    assert_eq!(operation.status.as_str(), "paused");
    let items = block(store.items(operation.id, None, None, 10)).unwrap().items;
    assert_eq!(items.len(), 2);

    let degraded = block(store.degraded(Day::parse("2026-01-04").unwrap())).unwrap();
    assert_eq!(degraded.iter().map(|found| (found.value, found.above)).collect::<Vec<_>>(), [(500_001, 500_000)]);
    let open = LedgerQuery::of("image_archive").status(LedgerStatus::Open);
    let keys: Vec<_> = block(store.page(open)).unwrap().entries.into_iter().map(|entry| entry.key.key).collect();
    assert_eq!(keys, ["gone", "open", "waits"], "one was reset");

    let connection = rusqlite::Connection::open(store.path()).unwrap();
    for table in ["owner", "journal", "pruned", "group_note", "trend", "threshold", "op_count", "event"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let count: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert!(count > 0, "{table} has lost its rows");
    }
}

#[test]
fn a_file_of_schema_2_is_read() {
    let (_directory, path) = copy();
    assert_whole(&SqliteStore::options(&path).open_read_only().unwrap());
}

#[test]
fn a_file_of_schema_2_is_gone_on_with() {
    let (_directory, path) = copy();
    let time = ManualClock::new(from_millis(MADE + 30 * 86_400_000));
    let store = SqliteStore::options(&path).clock(time.clock()).reserve(false).open().unwrap();
    assert_whole(&store);
    let me = || Actor::new("test", "");
    let found = block(store.doctor(Checkup::full())).unwrap();
    assert!(Finding::worst(&found) < Some(Severity::Error), "{found:#?}");

    let mut request = ClaimRequest::new(["fetch"], "test");
    request.limit = 100;
    let claimed = block(store.claim(request, me())).unwrap();
    let mut jobs: Vec<_> = claimed.iter().map(|claimed| claimed.row.job_id.as_str()).collect();
    jobs.sort_unstable();
    assert!(jobs.contains(&"large") && jobs.contains(&"replaying") && !jobs.contains(&"hinted"), "{jobs:?}");
    let operation = block(store.operations(None, 1)).unwrap().pop().unwrap();
    let resumed = block(store.steer(operation.id, Steer::Resume, me())).unwrap();
    assert_ne!(resumed.status.as_str(), "paused");
    let letter_id = rows(&store)["by hand"].letter_id.clone();
    assert_eq!(block(store.restore(letter_id, 1, me())).unwrap().state, LetterState::Parked);
    store.close(Duration::from_secs(60));
    let verdict: String =
        rusqlite::Connection::open(&path).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
}

fn sum(bytes: &[u8]) -> String {
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    format!("{:016x}", bytes.iter().fold(0xCBF2_9CE4_8422_2325, fnv))
}

// D23: neither the fixture nor migration 2 is ever edited; what changes the schema is a migration of its own.
#[test]
fn the_fixture_and_its_migration_are_the_ones_that_were_made() {
    let read = |name: &str| std::fs::read(Path::new(FIXTURES).join(name)).unwrap();
    assert_eq!(sum(&read("store-v2.db")), "22758035bc644477");
    assert_eq!(sum(&read(BLOB)), "75dfdc6093e61b9c");
    assert_eq!(sum(include_bytes!("../migrations/0002_operators.sql")), "333977f4bc0616f1");
}
