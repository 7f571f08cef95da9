//! The audit of a file: by part of the file, of letters that are gone, and of files of schema 1.
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking

use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, DeadLetter, DeadLetterSink, DeadLetterStore, Edit, EventQuery, EventRecord, Parking, Payload,
};
use rusqlite::Connection;

fn park(store: &SqliteStore, job: &str) -> String {
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now());
    letter.job_id = Some(job.into());
    letter.payload = Payload::Json("1".into());
    match store.submit(letter).wait(Duration::from_secs(30)).unwrap() {
        Parking::Parked { letter_id } => letter_id,
        other => panic!("not parked: {other}"),
    }
}

async fn events(store: &SqliteStore, query: EventQuery) -> Vec<EventRecord> {
    store.events(query.oldest_first()).await.unwrap().events
}

#[tokio::test]
async fn parts_of_a_file_have_audits_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let here = SqliteStore::options(&path).reserve(false).open().unwrap();
    let there = SqliteStore::options(&path).reserve(false).scope("other").open().unwrap();
    let (one, other) = (park(&here, "a"), park(&there, "a"));
    for (store, letter_id, foreign) in [(&here, &one, &other), (&there, &other, &one)] {
        let all = events(store, EventQuery::all()).await;
        assert_eq!(all.iter().map(|event| event.letter_id.as_ref()).collect::<Vec<_>>(), [Some(letter_id)]);
        assert_eq!(events(store, EventQuery::letter(foreign)).await, []);
        assert!(store.discard(foreign.clone(), Actor::new("ann", "")).await.is_err());
    }
    // A program of schema 1 does not say the part; the letter does.
    let raw = Connection::open(&path).unwrap();
    raw.execute("UPDATE event SET scope = NULL", []).unwrap();
    assert_eq!(events(&here, EventQuery::all()).await.len(), 1);
}

#[tokio::test]
async fn the_audit_outlives_its_letter() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    let letter_id = park(&store, "a");
    store.discard(letter_id.clone(), Actor::new("ann", "a duplicate")).await.unwrap();
    let before = events(&store, EventQuery::letter(&letter_id)).await;
    assert_eq!(before.iter().map(|event| event.what.as_str()).collect::<Vec<_>>(), ["parked", "discarded"]);
    let raw = Connection::open(&path).unwrap();
    raw.execute("PRAGMA foreign_keys = ON", []).unwrap();
    assert_eq!(raw.execute("DELETE FROM letter", []).unwrap(), 1);
    assert_eq!(events(&store, EventQuery::letter(&letter_id)).await, before);
    assert_eq!(events(&store, EventQuery::all()).await, before);
}

// S7: a file of schema 1 that may only be read is read as it is.
#[tokio::test]
async fn a_file_of_schema_1_is_read_as_it_is() {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/store-v1.db");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    std::fs::copy(fixture, &path).unwrap();
    let store = SqliteStore::options(&path).open_read_only().unwrap();
    let all = store.events(EventQuery::all()).await.unwrap().events;
    let of_letter = all.iter().find_map(|event| event.letter_id.clone()).unwrap();
    assert!(!store.revisions(of_letter.clone()).await.unwrap().is_empty());
    let refused = store.edit(Edit::new(of_letter, 1, "2"), Actor::new("ann", "")).await;
    assert_eq!(refused.unwrap_err().kind(), retry_runtime::error::StoreErrorKind::ReadOnly);
}
