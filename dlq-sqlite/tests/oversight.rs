//! A store that was opened for reading writes no audit, and says so: whoever looks after it writes it elsewhere.
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{Actor, DeadLetterStore as _, EventQuery, Incident, Oversight as _};
use retry_runtime::error::StoreErrorKind;

#[tokio::test]
async fn a_reader_refuses_to_write_the_audit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    SqliteStore::open(&path).unwrap().close(Duration::from_secs(10));
    let reader = SqliteStore::options(&path).open_read_only().unwrap();
    let refused = reader.record(Incident::Refused, None, String::new(), Actor::new("ann", "")).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::ReadOnly);
    assert_eq!(reader.events(EventQuery::all()).await.unwrap().events, []);
}
