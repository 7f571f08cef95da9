//! `idempotent = false`: what may have been done is not done again, by no route.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::unused_async)] // a helper of a test fails as a test does

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use retry_runtime::dead_letter::{Filter, MemoryStore, PageRequest};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{Classify, DeadLetterStore, Elapsed, GaveUp, Policy, Retry, StopReason, retry, retrying};

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("connection refused")]
    #[classify(retryable, class = "refused")]
    Refused,
    #[error("connection reset")]
    #[classify(retryable, class = "connection", outcome_unknown)]
    Reset,
    #[error("garbled answer")]
    #[classify(permanent, outcome_unknown)]
    Garbled,
    #[error("{0}")]
    #[classify(retryable, class = "timeout", outcome_unknown)]
    Timeout(#[from] Elapsed),
}

fn next(calls: &AtomicU32) -> u32 {
    calls.fetch_add(1, SeqCst) + 1
}

#[retry(idempotent = false, max_retries = 3, dead_letter(sink = dlq, job_id = "p1"), fallback = Ok(fallen(second)))]
async fn pay(dlq: &MemoryStore, calls: &AtomicU32, second: &AtomicU32, errors: &[E]) -> Result<u32, GaveUp<E>> {
    let call = next(calls);
    errors.get(call as usize - 1).map_or(Ok(call), |error| Err(*error))
}

fn fallen(second: &AtomicU32) -> u32 {
    next(second) + 100
}

// 9.1: no second route, but a letter
#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_ends_the_call_without_a_second_route() {
    for error in [E::Reset, E::Garbled] {
        let (dlq, calls, second) = (MemoryStore::new(), AtomicU32::new(0), AtomicU32::new(0));
        let gave_up = pay(&dlq, &calls, &second, &[E::Refused, error]).await.unwrap_err();
        assert_eq!((gave_up.reason(), gave_up.last()), (StopReason::OutcomeUnknown, Some(&error)));
        assert_eq!((calls.load(SeqCst), second.load(SeqCst)), (2, 0), "{error}");
        let text = gave_up.to_string();
        assert!(text.contains("may have been done all the same, and idempotent = false; last error: "), "{text}");
        let letters = dlq.list(Filter::default(), PageRequest::default()).await.unwrap().rows;
        assert_eq!(letters.len(), 1);
        assert_eq!(letters[0].reason, StopReason::OutcomeUnknown);
        assert_eq!(letters[0].attempts, 2);
    }
}

// what failed before anything was done is retried as ever
#[tokio::test(start_paused = true)]
async fn a_known_outcome_is_repeated() {
    let (dlq, calls, second) = (MemoryStore::new(), AtomicU32::new(0), AtomicU32::new(0));
    assert_eq!(pay(&dlq, &calls, &second, &[E::Refused; 3]).await.unwrap(), 4);
    calls.store(0, SeqCst);
    assert_eq!(pay(&dlq, &calls, &second, &[E::Refused; 4]).await.unwrap(), 101, "exhausted: the second route");
}

#[test]
fn retry_on_decides_about_the_failure_and_not_about_what_it_did() {
    #[retry(idempotent = false, retry_on(_))]
    fn f(calls: &AtomicU32) -> Result<(), E> {
        next(calls);
        Err(E::Reset)
    }
    let (calls, _waits) = (AtomicU32::new(0), VirtualWaits::start());
    assert_eq!(f(&calls), Err(E::Reset));
    assert_eq!(calls.load(SeqCst), 1);
}

// 3.3: nobody knows how far an attempt came that was cut off, by its own limit or by the deadline
#[tokio::test(start_paused = true)]
async fn an_attempt_that_ran_out_of_time_is_not_repeated() {
    #[retry(idempotent = false, attempt_timeout = "1s", deadline = limit, fallback = Ok(7))]
    async fn f(calls: &AtomicU32, limit: Duration) -> Result<u32, E> {
        next(calls);
        std::future::pending().await
    }
    #[retry(idempotent = true, attempt_timeout = "1s", fallback = Ok(7))]
    async fn again(calls: &AtomicU32) -> Result<u32, E> {
        next(calls);
        std::future::pending().await
    }
    for limit in [Duration::from_secs(60), Duration::from_millis(1500), Duration::from_millis(900)] {
        let calls = AtomicU32::new(0);
        assert!(matches!(f(&calls, limit).await, Err(E::Timeout(_))), "{limit:?}");
        assert_eq!(calls.load(SeqCst), 1);
    }
    let calls = AtomicU32::new(0);
    assert_eq!((again(&calls).await, calls.load(SeqCst)), (Ok(7), 3), "the default");
}

#[test]
fn every_face_has_it() {
    let _waits = VirtualWaits::start();
    let mut calls = 0;
    let inline = retrying!(idempotent = false; -> Result<(), E> {
        calls += 1;
        Err(E::Reset)
    });
    assert_eq!((inline, calls), (Err(E::Reset), 1));
    let mut calls = 0;
    let built = Retry::new(Policy::new()).idempotent(false).run_blocking_reporting(|| {
        calls += 1;
        Err::<(), _>(E::Reset)
    });
    assert_eq!((built.unwrap_err().reason(), calls), (StopReason::OutcomeUnknown, 1));
}
