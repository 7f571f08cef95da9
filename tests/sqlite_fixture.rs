//! A file of schema 1, made once and opened for ever: every later version has to read it, and go on with it (STORE D23).
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // tests fail by panicking

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::counters::{DailyCounters, Day};
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Filter, LetterRow, LetterState, ManualClock,
    PageRequest, Payload, from_millis,
};
use retry_runtime::ledger::{AttemptLedger, Begin, LedgerKey, LedgerStatus, Refusal};
use retry_runtime::{Disposition, StopReason};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/store-v1.db");

/// When the file was made: 2026-01-02 03:04:05.006 UTC.
const MADE: i64 = 1_767_323_045_006;

/// A copy: opening leaves traces beside the file, and the original must never change.
fn copy() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store-v1.db");
    std::fs::copy(FIXTURE, &path).unwrap();
    (directory, path)
}

async fn rows(store: &SqliteStore) -> BTreeMap<String, LetterRow> {
    let page = store.list(Filter::all(), PageRequest::default()).await.unwrap();
    page.rows.into_iter().map(|row| (row.job_id.clone(), row)).collect()
}

async fn assert_whole(store: &SqliteStore) {
    let rows = rows(store).await;
    let states: BTreeMap<&str, &str> = rows.iter().map(|(job, row)| (job.as_str(), row.state.as_str())).collect();
    let expected = [
        ("019b7ca9-8c8e-7000-8000-000000000007", "parked"),
        ("abandoned", "abandoned"),
        ("gone", "discarded"),
        ("hinted", "parked"),
        ("merged", "parked"),
        ("parked", "parked"),
        ("recovered", "recovered"),
        ("replaying", "replaying"),
    ];
    assert_eq!(states, BTreeMap::from(expected));

    let merged = store.get(rows["merged"].letter_id.clone()).await.unwrap().unwrap();
    assert_eq!(merged.payload, Payload::Json("{\"id\":\"merged\",\"edited\":true}".into()));
    assert_eq!((merged.revisions, merged.history.len()), (2, 4));
    let row = merged.row;
    assert_eq!((row.reason, row.disposition, row.code), (StopReason::Permanent, Disposition::Permanent, Some(403)));
    assert_eq!((row.error_class.as_str(), row.error_message.as_str()), ("permanent:403", "403 Forbidden"));
    assert_eq!((row.parkings, row.attempts, row.model.as_deref()), (2, 4, Some("gemini-2.5-pro")));
    assert_eq!((row.first_seen, row.last_seen), (from_millis(MADE), from_millis(MADE + 60_000)));
    let record = &merged.history[0];
    assert_eq!(
        (record.attempt, record.took, record.wait),
        (1, Duration::from_micros(1_500), Some(Duration::from_secs(2)))
    );

    let bare = store.get("019b7ca9-8c8e-7000-8000-000000000007".into()).await.unwrap().unwrap();
    assert_eq!(bare.payload, Payload::Unserializable("key must be a string".into()));
    assert_eq!(rows["hinted"].not_before, Some(from_millis(MADE + 90 * 86_400_000)));
    assert_eq!((rows["abandoned"].replays, rows["abandoned"].crashes, rows["abandoned"].fence), (5, 0, 5));
    assert_eq!(rows["replaying"].owner.as_deref(), Some("fixture"));

    let summary = store.summary().await.unwrap();
    assert_eq!(
        summary.to_string(),
        "dead-letter: 4 parked\n     2  exhausted:429\n     1  exhausted\n     1  permanent:403\n     1  replaying\n     \
         1  abandoned"
    );
    let open = store.entry(LedgerKey::new("image_archive", "open")).await.unwrap().unwrap();
    assert_eq!((open.status, open.attempts), (LedgerStatus::Open, 2));
    let counters = store.day("image_archive".into(), Day::parse("2026-01-04").unwrap()).await.unwrap();
    assert_eq!(counters, BTreeMap::from([("fallback_bytes".to_owned(), 500_001), ("worker_ok".to_owned(), 41)]));
}

#[tokio::test]
async fn a_file_of_schema_1_is_read() {
    let (_directory, path) = copy();
    assert_whole(&SqliteStore::options(&path).open_read_only().unwrap()).await;
}

#[tokio::test]
async fn a_file_of_schema_1_is_gone_on_with() {
    let (_directory, path) = copy();
    let time = ManualClock::new(from_millis(MADE + 30 * 86_400_000));
    let store = SqliteStore::options(&path).clock(time.clock()).reserve(false).open().unwrap();
    assert_whole(&store).await;

    // A known parking changes nothing; a new one opens what was closed.
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, time.now());
    letter.job_id = Some("recovered".into());
    letter.attempts = 1;
    for _ in 0..2 {
        assert!(store.submit(letter.clone()).await.is_kept());
    }
    let row = rows(&store).await.remove("recovered").unwrap();
    assert_eq!((row.state, row.parkings, row.attempts, row.fence), (LetterState::Parked, 2, 4, 2));

    // The lease of whoever made the file ran out long ago; the hint of `hinted` has not.
    let mut request = ClaimRequest::new(["fetch"], "test");
    request.limit = 10;
    let claimed = store.claim(request, Actor::new("test", "")).await.unwrap();
    let mut jobs: Vec<_> = claimed.iter().map(|claimed| claimed.row.job_id.as_str()).collect();
    jobs.sort_unstable();
    assert_eq!(jobs, ["019b7ca9-8c8e-7000-8000-000000000007", "merged", "parked", "recovered", "replaying"]);

    let begin = |key| store.begin(LedgerKey::new("image_archive", key), 3);
    assert_eq!(begin("ok").await.unwrap(), Begin::Refused(Refusal::AlreadyOk));
    assert_eq!(begin("gone").await.unwrap(), Begin::Refused(Refusal::Gone));
    assert!(matches!(begin("waits").await.unwrap(), Begin::Refused(Refusal::NotBefore(_))));
    assert!(matches!(begin("open").await.unwrap(), Begin::Go { attempt: 3, .. }));
    assert_eq!(begin("open").await.unwrap(), Begin::Refused(Refusal::CapReached { attempts: 3 }));
}

// CONTRACT 5: other programs read the file by its views alone
#[test]
fn the_views_of_schema_1_stay() {
    let (_directory, path) = copy();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let row: (String, String, f64, i64) = connection
        .query_row(
            "SELECT payload_json, status, last_seen, payload_size FROM dead_letter WHERE job_id = 'parked'",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .unwrap();
    assert_eq!(row, ("{\"id\":\"parked\"}".to_owned(), "parked".to_owned(), 1_767_323_045.006, 15));
    let count = |view: &str| {
        connection.query_row(&format!("SELECT count(*) FROM {view}"), [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(["dead_letter", "attempt_ledger", "daily_stats"].map(count), [8, 4, 2]);
}

fn sum(bytes: &[u8]) -> String {
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    format!("{:016x}", bytes.iter().fold(0xCBF2_9CE4_8422_2325, fnv))
}

// D23: neither the fixture nor migration 1 is ever edited; what changes the schema is a migration of its own.
#[test]
fn the_fixture_and_its_migration_are_the_ones_that_were_made() {
    assert_eq!(sum(&std::fs::read(FIXTURE).unwrap()), "b0ce3b9254a5cc7d");
    assert_eq!(sum(include_bytes!("../dlq-sqlite/migrations/0001_initial.sql")), "83fe19c1dba2dd88");
}
