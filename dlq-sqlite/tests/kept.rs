//! States of budgets and breakers in the file.
#![allow(clippy::unwrap_used, clippy::float_cmp)] // tests fail by panicking; tokens are thousandths

use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{Checkup, Doctor, Severity};
use retry_runtime::error::StoreErrorKind;
use retry_runtime::kept::StateStore;
use retry_runtime::{BreakerPhase, Budget, CircuitBreaker};

const MOMENT: Duration = Duration::from_secs(30);

// 7, 8: what one program keeps is there for the next
#[tokio::test]
async fn states_outlive_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let budget = || Budget::new().min_per_second(0).ratio(0.5);
    let breaker = || CircuitBreaker::new().min_calls(1).open_for(Duration::from_secs(600));
    {
        let store = SqliteStore::open(&path).unwrap();
        let (budget, breaker) = (budget(), breaker());
        assert!(!budget.restore_from(&store, "budget").await.unwrap());
        budget.succeeded();
        breaker.permit().unwrap().failed();
        drop(budget.keep_in(&store, "budget")); // nobody waits: the store writes it all the same
        breaker.keep_in(&store, "breaker").wait(MOMENT).unwrap().unwrap();
        store.close(MOMENT);
        assert_eq!(budget.keep_in(&store, "budget").await.unwrap_err().kind(), StoreErrorKind::Closed);
    }
    let store = SqliteStore::open(&path).unwrap();
    let (budget, breaker) = (budget(), breaker());
    assert!(budget.restore_from(&store, "budget").await.unwrap());
    assert!(breaker.restore_from_blocking(&store, "breaker", MOMENT).unwrap());
    assert_eq!((budget.tokens(), breaker.phase()), (0.5, BreakerPhase::Open));
    // kept again, in the place of what was there
    budget.succeeded();
    budget.keep_in(&store, "budget").await.unwrap();
    assert!(budget.restore_from(&store, "budget").await.unwrap());
    assert_eq!(budget.tokens(), 1.0);
    // nothing that an examination would complain of
    let findings = store.doctor(Checkup::full()).await.unwrap();
    assert!(findings.iter().all(|finding| finding.severity <= Severity::Info), "{findings:?}");
}

// Scopes of one file are apart, and a store that is only read keeps nothing.
#[tokio::test]
async fn each_scope_has_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let text = |store: &SqliteStore, name: &str| store.kept_state(name.to_owned());
    let keep = |store: &SqliteStore, name: &str, state: &str| store.keep_state(name.to_owned(), state.to_owned());
    let one = SqliteStore::options(&path).scope("a").open().unwrap();
    let other = SqliteStore::options(&path).scope("a:b").open().unwrap();
    keep(&one, "b:c", "one").await.unwrap();
    keep(&other, "c", "other").await.unwrap();
    assert_eq!(text(&one, "b:c").await.unwrap().as_deref(), Some("one"));
    assert_eq!(text(&other, "c").await.unwrap().as_deref(), Some("other"));
    assert_eq!(text(&other, "b:c").await.unwrap(), None);
    assert_eq!(text(&one, "min_reader_version").await.unwrap(), None, "the store's own entries are not states");
    let reader = SqliteStore::options(&path).scope("a").open_read_only().unwrap();
    assert_eq!(text(&reader, "b:c").await.unwrap().as_deref(), Some("one"));
    assert_eq!(keep(&reader, "b:c", "x").await.unwrap_err().kind(), StoreErrorKind::ReadOnly);
}
