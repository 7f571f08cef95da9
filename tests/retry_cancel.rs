//! `cancel = FUTURE`: at once, in an attempt and in a wait, with what was done so far parked.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::unused_async)] // a helper of a test fails as a test does

use std::cell::Cell;
use std::future::{pending, ready};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use retry_runtime::dead_letter::{Filter, LetterRow, MemoryStore, PageRequest};
use retry_runtime::{
    Classify, DeadLetterStore, Elapsed, GaveUp, Policy, Refused, Retry, RetryContext, StopReason, retry, retrying,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy {0}")]
    #[classify(retryable)]
    Busy(u32),
    #[error("{0}")]
    #[classify(transparent)]
    Refused(#[from] Refused),
    #[error("{0}")]
    #[classify(transparent)]
    Elapsed(#[from] Elapsed),
}

fn next(calls: &AtomicU32) -> u32 {
    calls.fetch_add(1, SeqCst) + 1
}

fn refused(end: Result<u32, E>) -> Refused {
    match end {
        Err(E::Refused(refused)) => refused,
        other => panic!("not cancelled: {other:?}"),
    }
}

fn after(token: &CancellationToken, time: Duration) {
    let token = token.clone();
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        token.cancel();
    });
}

async fn letters(dlq: &MemoryStore) -> Vec<LetterRow> {
    dlq.list(Filter::default(), PageRequest::default()).await.unwrap().rows
}

#[retry(max_retries = 5, cancel = token.cancelled(), dead_letter(sink = dlq, job_id = "j"), fallback = Ok(0))]
async fn busy(token: &CancellationToken, dlq: &MemoryStore, calls: &AtomicU32) -> Result<u32, E> {
    Err(E::Busy(next(calls)))
}

// 3.4, 9.1, 11.1: at once in a wait; no second route; a letter
#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_once() {
    let (token, dlq, calls, start) = (CancellationToken::new(), MemoryStore::new(), AtomicU32::new(0), Instant::now());
    after(&token, Duration::from_millis(1500));
    let refused = refused(busy(&token, &dlq, &calls).await);
    assert_eq!((start.elapsed(), calls.load(SeqCst)), (Duration::from_millis(1500), 2));
    // 5.6: what is known of the last failure
    let last = refused.last().unwrap();
    assert_eq!((refused.reason(), &*last.class, &*last.message), (StopReason::Cancelled, "busy", "busy 2"));
    assert_eq!(refused.to_string(), "refused (cancelled): the call was cancelled; last failure: busy: busy 2");
    let letters = letters(&dlq).await;
    assert_eq!((letters.len(), letters[0].reason, letters[0].attempts), (1, StopReason::Cancelled, 2));
    assert_eq!((&*letters[0].error_class, &*letters[0].error_message), ("cancelled:busy", "busy 2"));
}

// 1.2, 11.1: a call cancelled before its first attempt makes none, and is parked
#[tokio::test(start_paused = true)]
async fn no_attempt_is_made_after_the_cancel() {
    let (token, dlq, calls) = (CancellationToken::new(), MemoryStore::new(), AtomicU32::new(0));
    token.cancel();
    let refused = refused(busy(&token, &dlq, &calls).await);
    assert_eq!((refused.last(), calls.load(SeqCst)), (None, 0));
    let letters = letters(&dlq).await;
    assert_eq!((letters.len(), letters[0].attempts, &*letters[0].error_class), (1, 0, "cancelled"));
}

/// Tells when it is dropped.
struct Dropped<'a>(&'a AtomicBool);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

// 3.4: at once in an attempt, whose future is dropped
#[tokio::test(start_paused = true)]
async fn an_attempt_ends_at_once() {
    #[retry(attempt_timeout = "1h", deadline = "2h", cancel = token.cancelled())]
    async fn limited(token: &CancellationToken, dropped: &AtomicBool) -> Result<u32, E> {
        let _guard = Dropped(dropped);
        pending().await
    }
    #[retry(cancel = token.cancelled())]
    async fn unlimited(token: &CancellationToken, dropped: &AtomicBool) -> Result<u32, GaveUp<E>> {
        let _guard = Dropped(dropped);
        pending().await
    }
    for limit in [true, false] {
        let (token, dropped, start) = (CancellationToken::new(), AtomicBool::new(false), Instant::now());
        after(&token, Duration::from_secs(7));
        if limit {
            assert_eq!(refused(limited(&token, &dropped).await).last(), None);
        } else {
            let gave_up = unlimited(&token, &dropped).await.unwrap_err();
            assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::Cancelled, 1));
            assert_eq!(gave_up.last(), None);
            assert!(gave_up.to_string().starts_with("gave up after 1 attempt in 7.0s: cancelled"), "{gave_up}");
        }
        assert_eq!((start.elapsed(), dropped.load(SeqCst)), (Duration::from_secs(7), true));
    }
}

// polled first: an attempt that is ready at the same time has lost
#[tokio::test(start_paused = true)]
async fn the_cancel_is_polled_first() {
    #[retry(cancel = token.cancelled())]
    async fn f(token: &CancellationToken) -> Result<u32, E> {
        token.cancel();
        tokio::task::yield_now().await;
        Ok(1)
    }
    #[retry(base_delay = "0s", cancel = token.cancelled())]
    async fn zero_wait(token: &CancellationToken, calls: &AtomicU32) -> Result<u32, E> {
        token.cancel();
        Err(E::Busy(next(calls)))
    }
    refused(f(&CancellationToken::new()).await);
    let calls = AtomicU32::new(0);
    let refused = refused(zero_wait(&CancellationToken::new(), &calls).await);
    assert_eq!((calls.load(SeqCst), refused.last().is_some()), (1, true), "a zero wait is asked as well");
}

// an attempt that ends in the poll it was cancelled in has ended: what it says counts
#[tokio::test(start_paused = true)]
async fn a_cancel_after_the_success_changes_nothing() {
    #[retry(cancel = token.cancelled())]
    async fn f(token: &CancellationToken) -> Result<u32, E> {
        token.cancel();
        Ok(1)
    }
    assert_eq!(f(&CancellationToken::new()).await, Ok(1));
}

// evaluated once, in the order written; any future
#[tokio::test(start_paused = true)]
async fn it_is_a_future_of_any_kind_evaluated_once() {
    #[retry(name = "n", cancel = { made.set(made.get() + 1); limit }, base_delay = "400ms", backoff = fixed, max_retries = 9)]
    async fn f(made: &Cell<u32>, limit: tokio::time::Sleep, calls: &AtomicU32) -> Result<u32, E> {
        Err(E::Busy(next(calls)))
    }
    let (made, calls) = (Cell::new(0), AtomicU32::new(0));
    refused(f(&made, tokio::time::sleep(Duration::from_secs(1)), &calls).await);
    assert_eq!((made.get(), calls.load(SeqCst)), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn every_face_has_it() {
    let (token, calls) = (CancellationToken::new(), AtomicU32::new(0));
    after(&token, Duration::from_millis(1500));
    let mut context = RetryContext::new();
    let end = retrying!(cancel = token.cancelled(), context = context; async -> Result<u32, E> {
        Err(E::Busy(next(&calls)))
    });
    assert_eq!(&*refused(end).last().unwrap().message, "busy 2");
    assert_eq!((context.stop_reason(), context.attempts()), (Some(StopReason::Cancelled), 2));

    let token = CancellationToken::new();
    after(&token, Duration::from_millis(1500));
    let retry = Retry::new(Policy::new()).cancel(token.cancelled());
    let refused = refused(retry.run(|| async { Err(E::Busy(next(&calls))) }).await);
    assert_eq!((refused.reason(), &*refused.last().unwrap().message), (StopReason::Cancelled, "busy 4"));

    // the report needs no value of the error
    let retry = Retry::new(Policy::new()).cancel(ready(())).classify(|(): &()| unreachable!());
    let gave_up = retry.run_reporting(|| async { Err::<(), ()>(()) }).await.unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn methods_under_async_trait_and_tasks_are_cancelled_too() {
    #[async_trait::async_trait]
    trait Fetch {
        async fn fetch(&self) -> Result<u32, E>;
    }
    struct Client(CancellationToken, AtomicU32);
    #[async_trait::async_trait]
    impl Fetch for Client {
        #[retry(cancel = self.0.cancelled())]
        async fn fetch(&self) -> Result<u32, E> {
            Err(E::Busy(next(&self.1)))
        }
    }
    let token = CancellationToken::new();
    after(&token, Duration::from_millis(500));
    let client = Client(token.clone(), AtomicU32::new(0));
    // `Send`, as without the option
    let end = tokio::spawn(async move { client.fetch().await }).await.unwrap();
    assert_eq!(&*refused(end).last().unwrap().message, "busy 1");
}
