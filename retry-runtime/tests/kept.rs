//! Budgets and breakers kept in a store: a short-lived program goes on where the one before it stopped.
#![allow(clippy::unwrap_used, clippy::float_cmp)] // tests fail by panicking; tokens are thousandths
#![allow(clippy::items_after_statements)] // a store stands where it is used

use std::time::Duration;

use retry_runtime::dead_letter::{DeadLetterStore, Filter, MemoryStore};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::kept::{MAX_NAME, StateStore};
use retry_runtime::reply::Reply;
use retry_runtime::{BreakerPhase, Budget, Budgets, CircuitBreaker, Policy, Retry, StopReason, Taken, Verdict};

const MOMENT: Duration = Duration::from_secs(5);

/// Lives on successes alone: no time that passes changes it.
fn dry() -> Budget {
    Budget::new().min_per_second(0).ratio(1.0)
}

fn breaker() -> CircuitBreaker {
    CircuitBreaker::new().min_calls(1).probes(1).open_for(Duration::from_secs(600))
}

// 7: a budget that the program before has spent does not begin anew
#[tokio::test]
async fn a_program_begins_with_the_budget_that_the_last_one_left() {
    let store = MemoryStore::new();
    let run = async |retries_wanted: usize| {
        let budget = dry();
        if !budget.restore_from(&store, "gemini").await.unwrap() {
            (0..5).for_each(|_| budget.succeeded()); // the very first start
        }
        let made = (0..retries_wanted).filter_map(|_| budget.take("busy")).map(Taken::spend).count();
        budget.keep_in(&store, "gemini").await.unwrap();
        made
    };
    assert_eq!((run(3).await, run(3).await, run(3).await), (3, 2, 0));
    assert_eq!(store.count(Filter::all()).await.unwrap(), 0, "no letter");
}

// 8: a breaker that is open stays open
#[test]
fn a_program_finds_the_breaker_open_that_the_last_one_opened() {
    let store = MemoryStore::new();
    let before = breaker();
    assert!(!before.restore_from_blocking(&store, "gemini", MOMENT).unwrap());
    before.permit().unwrap().failed();
    before.keep_in(&store, "gemini").wait(MOMENT).unwrap().unwrap();

    let after = breaker();
    assert!(after.restore_from_blocking(&store, "gemini", MOMENT).unwrap());
    assert_eq!(after.state().openings, 1, "the next time it opens for twice as long");
    let left = after.permit().unwrap_err().retry_in();
    assert!(left > Duration::from_secs(590) && left <= Duration::from_secs(600), "{left:?}");
    // and calls are refused
    let call = Retry::new(Policy::new()).breaker(&after).classify(|_: &StoreError| Verdict::retryable("busy"));
    let refused = call.run_blocking_reporting(|| Ok::<(), _>(())).unwrap_err();
    assert_eq!((refused.reason(), refused.attempts()), (StopReason::BreakerOpen, 0));

    // one that closed meanwhile is kept closed, with its calls
    let closed = CircuitBreaker::new().min_calls(4);
    for _ in 0..3 {
        closed.permit().unwrap().failed();
    }
    closed.keep_in(&store, "gemini").wait(MOMENT).unwrap().unwrap();
    let after = CircuitBreaker::new().min_calls(4);
    assert!(after.restore_from_blocking(&store, "gemini", MOMENT).unwrap());
    assert_eq!(after.phase(), BreakerPhase::Closed);
    after.permit().unwrap().failed();
    assert_eq!(after.phase(), BreakerPhase::Open, "the fourth of four");
}

#[tokio::test]
async fn each_key_goes_on_and_fresh_ones_are_not_kept() {
    let store = MemoryStore::new();
    let before: Budgets<String> = Budgets::new(|| Budget::new().min_per_second(0).ratio(0.25));
    for (host, successes) in [("a", 4), ("b", 8), ("fresh \"quoted\"", 0)] {
        let budget = before.get(host);
        (0..successes).for_each(|_| budget.succeeded());
    }
    before.keep_in(&store, "hosts").await.unwrap();
    let kept = store.kept_state("hosts".to_owned()).await.unwrap().unwrap();
    assert!(!kept.contains("fresh"), "{kept}");
    let after: Budgets<String> = Budgets::new(|| Budget::new().min_per_second(0).ratio(0.25));
    assert!(after.restore_from(&store, "hosts").await.unwrap());
    assert_eq!((after.get("a").tokens(), after.get("b").tokens(), after.len()), (1.0, 2.0, 2));
}

// Something else under the name is said, and changes nothing.
#[tokio::test]
async fn what_is_something_else_is_refused() {
    let store = MemoryStore::new();
    breaker().keep_in(&store, "shared name").await.unwrap();
    let budget = dry();
    budget.succeeded();
    let refused = budget.restore_from(&store, "shared name").await.unwrap_err();
    assert_eq!((refused.kind(), budget.tokens()), (StoreErrorKind::Invalid, 1.0));
    let said = refused.to_string();
    assert!(said.contains("`shared name` is no state of a budget") && said.contains("a name of its own"), "{said}");
    for damaged in [
        "",
        "{",
        "[]",
        r#"{"of":"budget"}"#,
        r#"{"of":"budget","state":{"milli_tokens":-1,"unix_millis":0}}"#,
        r#"{"of":"budget","state":{"milli_tokens":"1"}}"#,
        r#"{"of":"breaker","state":{"milli_tokens":2,"unix_millis":0}}"#,
    ] {
        store.keep_state("damaged".to_owned(), damaged.to_owned()).await.unwrap();
        assert_eq!(
            budget.restore_from(&store, "damaged").await.unwrap_err().kind(),
            StoreErrorKind::Invalid,
            "{damaged}"
        );
        assert_eq!(budget.tokens(), 1.0);
    }
    let one_bad = r#"{"of":"budgets","state":{"a":{"milli_tokens":1,"unix_millis":1},"b":{}}}"#;
    store.keep_state("damaged".to_owned(), one_bad.to_owned()).await.unwrap();
    let budgets: Budgets<String> = Budgets::new(dry);
    assert!(budgets.restore_from(&store, "damaged").await.is_err() && budgets.is_empty());
}

#[tokio::test]
async fn names_have_bounds_and_stores_may_fail() {
    let store = MemoryStore::new();
    for name in ["", "x".repeat(MAX_NAME + 1).as_str()] {
        assert_eq!(dry().keep_in(&store, name).await.unwrap_err().kind(), StoreErrorKind::Invalid);
        assert_eq!(dry().restore_from(&store, name).await.unwrap_err().kind(), StoreErrorKind::Invalid);
    }
    dry().keep_in(&store, &"x".repeat(MAX_NAME)).await.unwrap();

    struct Broken;
    impl StateStore for Broken {
        fn keep_state(&self, _: String, _: String) -> Reply<Result<(), StoreError>> {
            Reply::ready(Err(StoreError::new(StoreErrorKind::Full, "no space left")))
        }
        fn kept_state(&self, _: String) -> Reply<Result<Option<String>, StoreError>> {
            // an answer that never comes
            let (answer, reply) = Reply::pair(|| Ok(None));
            std::mem::forget(answer);
            reply
        }
    }
    assert_eq!(dry().keep_in(&&Broken, "x").await.unwrap_err().kind(), StoreErrorKind::Full);
    let late = breaker().restore_from_blocking(&Broken, "x", Duration::ZERO).unwrap_err();
    assert_eq!(late.kind(), StoreErrorKind::Unavailable);
}
