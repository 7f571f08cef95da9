//! Those who look after a store are looked after, too: in memory and in a file alike.
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, DeadLetter, DeadLetterStore, EventQuery, Filter, Incident, LetterState, MemoryStore, Oversight, PageRequest,
};
use retry_runtime::error::StoreErrorKind;

async fn the_audit_has_what_was_looked_at(store: impl DeadLetterStore + Oversight) {
    assert!(store.submit(DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now())).await.is_kept());
    let id = store.list(Filter::all(), PageRequest::default()).await.unwrap().rows.remove(0).letter_id;
    for incident in Incident::ALL {
        let actor = Actor::new("ann", "night shift");
        store.record(*incident, Some(id.clone()), "x".repeat(9_000), actor).await.unwrap();
    }
    // A letter that is not there: it happened all the same.
    store.record(Incident::Refused, Some("none".into()), "discard".into(), Actor::new("bea", "")).await.unwrap();
    let events = store.events(EventQuery::letter(&id)).await.unwrap().events;
    let words: Vec<_> = events.iter().map(|event| event.what.as_str()).collect();
    assert_eq!(words, ["login_refused", "logged_in", "refused", "payload_shown", "parked"]);
    let shown = events.get(3).unwrap();
    assert_eq!((shown.actor.as_deref(), shown.reason.as_deref()), (Some("ann"), Some("night shift")));
    assert!(shown.detail.len() <= 2_048 && shown.detail.contains("cut"), "{}", shown.detail.len());
    assert_eq!((shown.before, shown.after), (None, None));
    let newest = store.events(EventQuery::all().limit(1)).await.unwrap().events.remove(0);
    assert_eq!((newest.letter_id, newest.detail.as_str()), (None, "discard"));
    let row = store.get(id).await.unwrap().unwrap().row;
    assert_eq!((row.state, row.fence), (LetterState::Parked, 0), "no letter is changed");
}

#[tokio::test]
async fn in_memory() {
    the_audit_has_what_was_looked_at(MemoryStore::new()).await;
}

#[tokio::test]
async fn in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::open(&path).unwrap();
    the_audit_has_what_was_looked_at(store.clone()).await;
    store.close(Duration::from_secs(10));
    let reader = SqliteStore::options(&path).open_read_only().unwrap();
    let refused = reader.record(Incident::Refused, None, String::new(), Actor::new("ann", "")).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::ReadOnly);
}
