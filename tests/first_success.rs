//! What a call costs that succeeds at once: nothing is allocated, and no clock is read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use allocation_counter::measure;
use retry_runtime::testing::clock_reads;
use retry_runtime::{Budget, Classify, Jitter, Policy, Retry, RetryContext, retry, retrying};

#[derive(Debug, PartialEq, thiserror::Error, Classify)]
#[error("busy")]
#[classify(retryable)]
struct Busy;

static POLICY: Policy = Policy::new().max_retries(9).jitter(Jitter::Full);

#[retry]
fn blocking(n: u32) -> Result<u32, Busy> {
    Ok(n)
}

#[retry(max_retries = 4, base_delay = "2s", jitter = "1s", retry_on(Busy), retry_ok(0))]
async fn literal(n: u32) -> Result<u32, Busy> {
    Ok(n)
}

#[retry(policy = &POLICY, unknown = retry)]
async fn by_policy(n: u32) -> Result<u32, Busy> {
    Ok(n)
}

static BUDGET: Budget = Budget::new();

#[retry(budget = &BUDGET)]
async fn with_budget(n: u32) -> Result<u32, Busy> {
    Ok(n)
}

#[retry(deadline = "5s")]
async fn with_deadline(n: u32) -> Result<u32, Busy> {
    Ok(n)
}

/// The value of a future that is ready when first polled.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a success waited"),
    }
}

/// Allocations and clock reads of a call.
fn cost(call: impl FnOnce() -> Result<u32, Busy>) -> (u64, u64) {
    let (before, mut outcome) = (clock_reads(), Err(Busy));
    let allocated = measure(|| outcome = call()).count_total;
    assert_eq!(outcome, Ok(7));
    (allocated, clock_reads() - before)
}

// 12.4
#[test]
fn a_first_success_allocates_nothing_and_reads_no_clock() {
    assert_eq!(cost(|| blocking(7)), (0, 0));
    assert_eq!(cost(|| now(literal(7))), (0, 0));
    assert_eq!(cost(|| now(by_policy(7))), (0, 0));
    assert_eq!(cost(|| retrying!(max_retries = 3; -> Result<u32, Busy> { Ok(7) })), (0, 0));
    assert_eq!(cost(|| Retry::new(POLICY).run_blocking(|| Ok(7))), (0, 0));
    assert_eq!(cost(|| now(Retry::new(POLICY).run(|| async { Ok(7) }))), (0, 0));
    // 7.1: an add of a budget needs no time
    assert_eq!(cost(|| now(with_budget(7))), (0, 0));
    assert_eq!(cost(|| Retry::new(POLICY).budget(&BUDGET).run_blocking(|| Ok(7))), (0, 0));
}

// 12.4: the counts bite, and an option that needs the time gets it
#[test]
fn what_needs_the_time_reads_it() {
    assert_eq!(cost(|| now(with_deadline(7))), (0, 1));
    let mut context = RetryContext::new();
    let (allocated, reads) = cost(|| Retry::new(POLICY).context(&mut context).run_blocking(|| Ok(7)));
    assert!(allocated == 0 && reads > 0, "{allocated} allocations, {reads} reads");
    let deadline = || Retry::new(POLICY).deadline(Duration::from_secs(5)).run_blocking(|| Ok(7));
    assert_eq!(cost(deadline), (0, 1));
    assert_eq!(cost(|| Ok(*Box::new(7))).0, 1);
}
