//! What a call holds of a budget and a breaker, and when it lets go: in waits, in second routes, in parking, when cancelled.
#![allow(clippy::unwrap_used)] // a helper of a test fails as a test does
#![allow(clippy::items_after_statements)] // a function stands where it is tried

use std::future::{Future, pending, ready};
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::task::{Context, Waker};
use std::time::Duration;

use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink, Parking, Ticket};
use retry_runtime::reply::Reply;
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{
    BreakerPhase, Budget, CircuitBreaker, Classify, GaveUp, Policy, Refused, Retry, StopReason, retry, retrying,
};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("wait")]
    #[classify(retryable, retry_after = 0)]
    Wait(Duration),
    #[error(transparent)]
    #[classify(transparent)]
    Refused(#[from] Refused),
}

/// Lives on successes alone, and has so many tokens.
fn tokens(tokens: u32) -> Budget {
    let budget = Budget::new().min_per_second(0).ratio(1.0);
    (0..tokens).for_each(|_| budget.succeeded());
    budget
}

/// It admits one call, as a probe.
fn half_open() -> CircuitBreaker {
    let breaker = CircuitBreaker::new().min_calls(1).probes(1).open_for(Duration::ZERO);
    breaker.permit().unwrap().failed();
    breaker
}

fn is_free(breaker: &CircuitBreaker) -> bool {
    breaker.permit().is_ok()
}

// 7.2: taken before the wait, and given back when the wait is cancelled or dropped, in every async face
#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_early_gives_back_what_it_took() {
    #[retry(budget = budget, cancel = tokio::time::sleep(Duration::from_millis(500)))]
    async fn cancelled(budget: &Budget) -> Result<u32, E> {
        Err(E::Busy)
    }
    let budget = tokens(2);
    let stopped = || tokio::time::sleep(Duration::from_millis(500));
    let is_cancelled = |end| matches!(end, Err(E::Refused(refused)) if refused.reason() == StopReason::Cancelled);
    assert!(is_cancelled(cancelled(&budget).await));
    assert_eq!(budget.milli_tokens(), 2000, "attribute");
    let end = retrying!(budget = &budget, cancel = stopped(); async -> Result<u32, E> { Err(E::Busy) });
    assert!(is_cancelled(end));
    assert_eq!(budget.milli_tokens(), 2000, "retrying!");
    let retry = Retry::new(Policy::new()).budget(&budget).cancel(stopped());
    assert!(is_cancelled(retry.run(|| async { Err(E::Busy) }).await));
    assert_eq!(budget.milli_tokens(), 2000, "builder");
    {
        let retry = Retry::new(Policy::new()).budget(&budget);
        let mut in_its_wait = pin!(retry.run(|| async { Err::<u32, _>(E::Busy) }));
        assert!(in_its_wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(budget.milli_tokens(), 1000, "the builder takes before its wait");
    }
    assert_eq!(budget.milli_tokens(), 2000, "and gives back");
}

type Call<'w> = Pin<Box<dyn Future<Output = Result<u32, E>> + 'w>>;
/// A call whose attempts hang, or fail.
type Face = for<'w> fn(&'w Budget, &'w CircuitBreaker, bool) -> Call<'w>;

async fn attempt(hangs: bool) -> Result<u32, E> {
    if hangs { pending().await } else { Err(E::Busy) }
}

struct Api<'w>(&'w Budget, &'w CircuitBreaker);

#[async_trait::async_trait(?Send)]
trait Works {
    async fn method(&self, hangs: bool) -> Result<u32, E>;
}

#[async_trait::async_trait(?Send)]
impl Works for Api<'_> {
    #[retry(budget = self.0, breaker = self.1)]
    async fn method(&self, hangs: bool) -> Result<u32, E> {
        attempt(hangs).await
    }
}

const ASYNC_FACES: &[(&str, Face)] = &[
    ("attribute", |budget, breaker, hangs| {
        #[retry(budget = budget, breaker = breaker)]
        async fn call(budget: &Budget, breaker: &CircuitBreaker, hangs: bool) -> Result<u32, E> {
            attempt(hangs).await
        }
        Box::pin(call(budget, breaker, hangs))
    }),
    ("attribute, everything", |budget, breaker, hangs| {
        #[retry(budget = budget, breaker = breaker, attempt_timeout = "1h", cancel = pending::<()>(), nested = detect, dead_letter(sink = Nowhere))]
        async fn call(budget: &Budget, breaker: &CircuitBreaker, hangs: bool) -> Result<u32, GaveUp<E>> {
            attempt(hangs).await
        }
        Box::pin(async move { call(budget, breaker, hangs).await.map_err(|_| E::Busy) })
    }),
    ("method", |budget, breaker, hangs| Box::pin(async move { Api(budget, breaker).method(hangs).await })),
    ("retrying!", |budget, breaker, hangs| {
        Box::pin(async move {
            retrying!(budget = budget, breaker = breaker; async -> Result<u32, E> { attempt(hangs).await })
        })
    }),
    ("builder", |budget, breaker, hangs| {
        let retry = Retry::new(Policy::new()).budget(budget).breaker(breaker);
        Box::pin(retry.run(move || attempt(hangs)))
    }),
];

/// A sink for what nobody looks at.
struct Nowhere;

impl DeadLetterSink for Nowhere {
    fn submit(&self, _: DeadLetter) -> Ticket {
        Reply::ready(Parking::Replaying)
    }
}

// 7.2, 8.2: dropped in an attempt or in a wait, a call of any face has let go of all it held, and said nothing
#[tokio::test(start_paused = true)]
async fn a_dropped_call_gives_back_what_it_holds() {
    for (name, face) in ASYNC_FACES {
        for hangs in [true, false] {
            let (budget, breaker) = (tokens(2), half_open());
            let mut call = face(&budget, &breaker, hangs);
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "{name}");
            let taken = if hangs { 2000 } else { 1000 };
            assert_eq!((budget.milli_tokens(), is_free(&breaker)), (taken, false), "{name}, it holds them");
            drop(call);
            assert_eq!((budget.milli_tokens(), is_free(&breaker)), (2000, true), "{name}, hangs: {hangs}");
            assert_eq!(breaker.phase(), BreakerPhase::HalfOpen, "{name}, hangs: {hangs}");
        }
    }
}

// 8.2, 5.1, 7.2: of a retry that another limit refuses nothing is held when the second route runs, nor was the budget asked
#[test]
fn a_retry_that_does_not_come_holds_nothing() {
    #[retry(budget = budget, breaker = breaker, deadline = "5s", max_retry_after = "9s", fallback = second(budget, breaker))]
    fn call(budget: &Budget, breaker: &CircuitBreaker, error: &E) -> Result<u32, GaveUp<E>> {
        Err(error.clone())
    }
    fn second(budget: &Budget, breaker: &CircuitBreaker) -> Result<u32, E> {
        assert!(is_free(breaker));
        assert!([0, 9000].contains(&budget.milli_tokens()), "{}", budget.milli_tokens());
        Err(E::Busy)
    }
    let reason = |budget: &Budget, secs| {
        let _waits = VirtualWaits::start();
        let reason = call(budget, &half_open(), &E::Wait(Duration::from_secs(secs))).unwrap_err().reason();
        (reason, budget.denied())
    };
    assert_eq!(reason(&tokens(9), 60), (StopReason::HintTooLong, 0));
    assert_eq!(reason(&tokens(0), 60), (StopReason::HintTooLong, 0));
    assert_eq!(reason(&tokens(9), 6), (StopReason::Deadline, 0));
    assert_eq!(reason(&tokens(0), 6), (StopReason::Deadline, 0));
    assert_eq!(reason(&tokens(0), 1), (StopReason::BudgetDenied, 1));
}

/// Tells whether the breaker was free when a letter came.
struct Looks<'a>(&'a CircuitBreaker, Mutex<Vec<bool>>);

impl DeadLetterSink for Looks<'_> {
    fn submit(&self, _: DeadLetter) -> Ticket {
        self.1.lock().unwrap().push(is_free(self.0));
        Reply::ready(Parking::Replaying)
    }
}

// 8.2: cancelled in its attempt, a call has let go of its permit before its letter is parked
#[tokio::test(start_paused = true)]
async fn a_cancelled_attempt_gives_its_permit_back_at_once() {
    #[retry(breaker = breaker, cancel = tokio::time::sleep(Duration::from_secs(1)), dead_letter(sink = sink))]
    async fn call(breaker: &CircuitBreaker, sink: &Looks<'_>) -> Result<u32, E> {
        pending().await
    }
    let breaker = half_open();
    let sink = Looks(&breaker, Mutex::default());
    assert!(call(&breaker, &sink).await.is_err());
    assert_eq!(*sink.1.lock().unwrap(), [true]);
    assert_eq!(breaker.phase(), BreakerPhase::HalfOpen, "and said nothing about it");
}

// 3.4: whoever is cancelled already asks no breaker
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_cancelled_though_the_breaker_is_open() {
    #[retry(breaker = breaker, cancel = ready(()))]
    async fn call(breaker: &CircuitBreaker) -> Result<u32, GaveUp<E>> {
        Err(E::Busy)
    }
    let breaker = CircuitBreaker::new().min_calls(1);
    breaker.permit().unwrap().failed();
    assert_eq!(call(&breaker).await.unwrap_err().reason(), StopReason::Cancelled);
    let retry = Retry::new(Policy::new()).breaker(&breaker).cancel(ready(()));
    let gave_up = retry.run_reporting(|| async { Err::<u32, _>(E::Busy) }).await.unwrap_err();
    assert_eq!((gave_up.reason(), breaker.refused()), (StopReason::Cancelled, 0));
}

// 5.7: a value that is rejected is a failure, to the breaker as to the budget
#[test]
fn a_rejected_value_counts() {
    #[retry(retry_ok(0), budget = budget, breaker = breaker)]
    fn call(budget: &Budget, breaker: &CircuitBreaker) -> Result<u32, E> {
        Ok(0)
    }
    let _waits = VirtualWaits::start();
    let (budget, breaker) = (tokens(5), CircuitBreaker::new().min_calls(2));
    assert_eq!(call(&budget, &breaker), Ok(0));
    assert_ne!(breaker.phase(), BreakerPhase::Closed);
    assert_eq!(budget.milli_tokens(), 4000, "one retry, and no success that pays in");
}

// 8.2: a retry that the breaker admits and the budget denies is no call, and so no failure
#[test]
fn a_retry_that_does_not_come_is_no_verdict() {
    #[retry(budget = budget, breaker = breaker)]
    fn call(budget: &Budget, breaker: &CircuitBreaker) -> Result<u32, E> {
        Err(E::Busy)
    }
    let breaker = CircuitBreaker::new().min_calls(2);
    assert_eq!(call(&tokens(0), &breaker), Err(E::Busy));
    assert_eq!(breaker.state().calls, 1);
}
