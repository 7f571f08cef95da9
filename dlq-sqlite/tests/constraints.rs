//! The file itself refuses a letter that is half in a state, whoever writes it (STORE S1, D23).
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::StopReason;
use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink};
use rusqlite::Connection;

/// A file with one parked letter, and a connection of another program to it.
fn file() -> (tempfile::TempDir, SqliteStore, Connection) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now());
    letter.job_id = Some("a".into());
    assert!(store.submit(letter).wait(Duration::from_secs(30)).unwrap().is_kept());
    let other = Connection::open(&path).unwrap();
    (directory, store, other)
}

// S1
#[test]
fn each_half_set_row_is_refused() {
    let (_directory, _store, other) = file();
    let half_set = [
        "state = 'replaying'",
        "state = 'replaying', owner = 'me'",
        "state = 'replaying', lease_until = 7",
        "state = 'replaying', owner = 'me', lease_until = 7, closed_at = 7",
        "owner = 'me'",
        "lease_until = 7",
        "owner = 'me', lease_until = 7",
        "closed_at = 7",
        "state = 'recovered'",
        "state = 'discarded'",
        "state = 'abandoned'",
        "state = 'recovered', closed_at = 7, owner = 'me', lease_until = 7",
        "state = 'lost'",
        "state = NULL",
        "disposition = 'perhaps'",
        "attempts = -1",
        "replays = -1",
        "crashes = -1",
        "parkings = 0",
        "max_replays = -1",
        "max_crashes = -1",
        "failed_again = 2",
        "payload_revision = -1",
        "payload_altered = 2",
        "attempts = 'many'",
    ];
    for change in half_set {
        let result = other.execute(&format!("UPDATE letter SET {change}"), []);
        assert!(result.is_err(), "{change}: accepted");
    }
    let state: String = other.query_row("SELECT state FROM letter", [], |row| row.get(0)).unwrap();
    assert_eq!(state, "parked");
    // Whole rows are accepted: it was not something else that refused the others.
    let whole = [
        "state = 'replaying', owner = 'me', lease_until = 7",
        "state = 'recovered', closed_at = 7, owner = NULL, lease_until = NULL",
        "state = 'discarded'",
        "state = 'abandoned'",
        "state = 'parked', closed_at = NULL",
    ];
    for change in whole {
        assert_eq!(other.execute(&format!("UPDATE letter SET {change}"), []).unwrap(), 1, "{change}");
    }
}

// D2, D23
#[test]
fn one_job_has_one_letter_and_a_payload_one_place() {
    let (_directory, _store, other) = file();
    let copied = "INSERT INTO letter(id, scope, kind, job_id, state, reason, disposition, error_class, error_type, \
         error_message, fingerprint, fingerprint_version, max_replays, max_crashes, first_seen, last_seen, parked_at, writer)
         SELECT 'another', scope, kind, job_id, 'recovered', reason, disposition, error_class, error_type, error_message, \
         fingerprint, fingerprint_version, max_replays, max_crashes, first_seen, last_seen, parked_at, writer FROM letter";
    assert!(other.execute(copied, []).is_err(), "a second letter of a job");
    let payload = |bytes: &str, blob: &str, revision: u32| {
        let sql = format!(
            "INSERT INTO payload(seq, revision, encoding, size, bytes, blob, sha256, source, created_at)
             SELECT seq, {revision}, 'json', 1, {bytes}, {blob}, x'00', 'edit', 0 FROM letter"
        );
        other.execute(&sql, [])
    };
    assert!(payload("NULL", "NULL", 1).is_err(), "a payload that is nowhere");
    assert!(payload("x'31'", "'file'", 1).is_err(), "a payload in two places");
    assert!(payload("x'31'", "NULL", 0).is_err(), "revision 0");
    assert_eq!(payload("x'31'", "NULL", 1).unwrap(), 1);
    assert!(payload("x'32'", "NULL", 1).is_err(), "a revision written twice");
    for outcome in ["perhaps", ""] {
        let sql = format!("INSERT INTO attempt(seq, outcome, number, at, took_us) VALUES(1, '{outcome}', 1, 0, 0)");
        assert!(other.execute(&sql, []).is_err(), "outcome `{outcome}`");
    }
}
