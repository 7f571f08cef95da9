//! `budget` and `breaker` from the outside: a shared limit ends the call, with its own last error, through every face.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::needless_pass_by_value)] // a helper of a test fails as a test does

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use retry_runtime::dead_letter::{Filter, LetterRow, MemoryStore, PageRequest};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{
    BreakerPhase, Budget, Budgets, CircuitBreaker, Classify, DeadLetterStore, GaveUp, Policy, Refused, Retry,
    RetryContext, StopReason, retry, retrying,
};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("slow")]
    #[classify(retryable, class = "timeout")]
    Slow,
    #[error("wait")]
    #[classify(retryable, retry_after = 0)]
    Wait(Duration),
    #[error("denied")]
    #[classify(permanent)]
    Denied,
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

/// One failure opens it, for ten seconds.
fn breaker() -> CircuitBreaker {
    CircuitBreaker::new().min_calls(1).probes(1)
}

fn refused(end: &Result<u32, E>) -> bool {
    matches!(end, Err(E::Refused(refused)) if refused.reason() == StopReason::BreakerOpen && refused.last().is_none())
}

/// Runs on a paused clock, the same one for all calls of a test: time goes on between them.
fn paused<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

async fn letters(dlq: &MemoryStore) -> Vec<LetterRow> {
    dlq.list(Filter::default(), PageRequest::default()).await.unwrap().rows
}

/// A call through one face: the same options, whatever its form.
type Face = fn(&Budget, &CircuitBreaker, &mut RetryContext, &dyn Fn() -> Result<u32, E>) -> Result<u32, E>;

const FACES: &[(&str, Face)] = &[
    ("attribute", |budget, breaker, context, body| {
        #[retry(max_retries = forever, budget = budget, breaker = breaker, context = context)]
        async fn call(
            budget: &Budget,
            breaker: &CircuitBreaker,
            context: &mut RetryContext,
            body: &dyn Fn() -> Result<u32, E>,
        ) -> Result<u32, E> {
            body()
        }
        paused(call(budget, breaker, context, body))
    }),
    ("attribute, blocking", |budget, breaker, context, body| {
        #[retry(max_retries = forever, budget = budget, breaker = breaker, context = context)]
        fn call(
            budget: &Budget,
            breaker: &CircuitBreaker,
            context: &mut RetryContext,
            body: &dyn Fn() -> Result<u32, E>,
        ) -> Result<u32, E> {
            body()
        }
        call(budget, breaker, context, body)
    }),
    ("retrying!", |budget, breaker, context, body| {
        paused(async {
            retrying!(max_retries = forever, budget = budget, breaker = breaker, context = context; async -> Result<u32, E> { body() })
        })
    }),
    (
        "retrying!, blocking",
        |budget, breaker, context, body| retrying!(max_retries = forever, budget = budget, breaker = breaker, context = context; -> Result<u32, E> { body() }),
    ),
    ("builder", |budget, breaker, context, body| {
        let retry = Retry::new(Policy::new().forever()).budget(budget).breaker(breaker).context(context);
        paused(retry.run(|| async { body() }))
    }),
    ("builder, blocking", |budget, breaker, context, body| {
        Retry::new(Policy::new().forever()).context(context).budget(budget).breaker(breaker).run_blocking(body)
    }),
];

// 7.2, 5.6: the budget ends a loop that nothing else would end
#[test]
fn a_budget_stops_the_loop_of_every_face() {
    let never_opens = CircuitBreaker::new().min_calls(u32::MAX);
    for (name, face) in FACES {
        let (budget, calls, mut context, _waits) =
            (tokens(3), Cell::new(0), RetryContext::new(), VirtualWaits::start());
        let end = face(&budget, &never_opens, &mut context, &|| {
            calls.set(calls.get() + 1);
            Err(E::Busy)
        });
        assert_eq!((end, calls.get()), (Err(E::Busy), 4), "{name}");
        assert_eq!((context.stop_reason(), context.attempts()), (Some(StopReason::BudgetDenied), 4), "{name}");
        assert_eq!((budget.tokens().to_string(), budget.denied()), ("0".to_owned(), 1), "{name}");
    }
}

// 7.1: what a success gives, and what it gives back
#[test]
fn every_face_pays_in_and_is_refunded() {
    let never_opens = CircuitBreaker::new().min_calls(u32::MAX);
    for (name, face) in FACES {
        let (budget, mut context, _waits) = (tokens(5), RetryContext::new(), VirtualWaits::start());
        let mut run = |outcomes: &[Result<u32, E>]| {
            let at = Cell::new(0);
            face(&budget, &never_opens, &mut context, &|| outcomes[at.replace(at.get() + 1)].clone())
        };
        assert_eq!(run(&[Ok(1)]), Ok(1));
        assert_eq!(budget.milli_tokens(), 6000, "{name}");
        // a timeout takes two, and the last retry gets its own back
        assert_eq!(run(&[Err(E::Slow), Err(E::Busy), Ok(2)]), Ok(2));
        assert_eq!(budget.milli_tokens(), 4000, "{name}");
        assert_eq!(run(&[Err(E::Busy), Err(E::Denied)]), Err(E::Denied));
        assert_eq!(budget.milli_tokens(), 3000, "{name}");
    }
}

// 8.1, 5.6: between attempts the call's own error comes back, before the first there is none
#[test]
fn an_open_breaker_stops_every_face_between_attempts_and_before_the_first() {
    for (name, face) in FACES {
        let (breaker, calls, _waits) = (breaker().min_calls(2), Cell::new(0), VirtualWaits::start());
        let mut context = RetryContext::new();
        let mut run = || {
            let end = face(&tokens(9), &breaker, &mut context, &|| {
                calls.set(calls.get() + 1);
                Err(E::Busy)
            });
            (end, context.stop_reason(), context.attempts())
        };
        assert_eq!(run(), (Err(E::Busy), Some(StopReason::BreakerOpen), 2), "{name}");
        let (end, reason, attempts) = run();
        assert!(refused(&end), "{name}: {end:?}");
        assert_eq!((reason, attempts, calls.get()), (Some(StopReason::BreakerOpen), 0, 2), "{name}");
    }
}

// 8.2: a permanent failure is no verdict, a success is one
#[test]
fn every_face_tells_the_breaker_what_came_of_an_attempt() {
    for (name, face) in FACES {
        let (breaker, _waits) = (breaker().open_for(Duration::ZERO), VirtualWaits::start());
        let mut context = RetryContext::new();
        let mut run = |outcome: Result<u32, E>| face(&tokens(0), &breaker, &mut context, &|| outcome.clone());
        assert_eq!(run(Err(E::Denied)), Err(E::Denied));
        assert_eq!(breaker.phase(), BreakerPhase::Closed, "{name}");
        assert_eq!(run(Err(E::Slow)), Err(E::Slow));
        assert_ne!(breaker.phase(), BreakerPhase::Closed, "{name}");
        assert_eq!(run(Err(E::Denied)), Err(E::Denied));
        assert_eq!(breaker.phase(), BreakerPhase::HalfOpen, "{name}: the probe said nothing, and its place is free");
        assert_eq!(run(Ok(1)), Ok(1));
        assert_eq!(breaker.phase(), BreakerPhase::Closed, "{name}");
    }
}

// 5.1: the first that says no names the reason, and nothing is taken for a retry that does not come
#[test]
fn the_breaker_is_asked_before_the_hint_and_the_budget_last() {
    #[retry(budget = budget, breaker = breaker, deadline = "5s", max_retry_after = "3s")]
    fn call(budget: &Budget, breaker: &CircuitBreaker, error: &E) -> Result<u32, GaveUp<E>> {
        Err(error.clone())
    }
    let closed = CircuitBreaker::new();
    let reason = |budget: &Budget, breaker: &CircuitBreaker, wait| {
        let _waits = VirtualWaits::start();
        call(budget, breaker, &E::Wait(Duration::from_secs(wait))).unwrap_err().reason()
    };
    assert_eq!(reason(&tokens(0), &breaker(), 9), StopReason::BreakerOpen);
    let budget = tokens(9);
    assert_eq!(reason(&budget, &closed, 9), StopReason::HintTooLong);
    assert_eq!(budget.milli_tokens(), 9000);
    assert_eq!(reason(&budget, &closed, 3), StopReason::Deadline);
    assert_eq!(budget.milli_tokens(), 8000, "one retry, and none for the wait that was not begun");
    assert_eq!(reason(&tokens(0), &closed, 3), StopReason::BudgetDenied);
}

// 8.2: whoever drops a call: see `limits_held`
#[test]
fn a_panic_in_the_body_is_no_verdict() {
    for (name, face) in FACES {
        let breaker = breaker().open_for(Duration::ZERO);
        breaker.permit().unwrap().failed();
        let panics = || resume_unwind(Box::new("the body panicked"));
        let call = || face(&tokens(0), &breaker, &mut RetryContext::new(), &panics);
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err(), "{name}");
        assert_eq!(breaker.phase(), BreakerPhase::HalfOpen, "{name}");
        assert!(breaker.permit().is_ok(), "{name}: the permit came back");
    }
}

// 9.1, 11.1: refused before the first attempt, the second route runs, and the letter has no attempt
#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_falls_back_or_parks_with_no_attempt() {
    #[retry(breaker = breaker, fallback = if falls_back { Ok(7) } else { Err(error) }, dead_letter(sink = dlq, job_id = "a"))]
    async fn both(dlq: &MemoryStore, breaker: &CircuitBreaker, falls_back: bool) -> Result<u32, E> {
        Err(E::Busy)
    }
    #[retry(name = "parks", breaker = breaker, dead_letter(sink = dlq, job_id = "b"))]
    fn parks(dlq: &MemoryStore, breaker: &CircuitBreaker) -> Result<u32, E> {
        Err(E::Busy)
    }
    let (dlq, breaker) = (MemoryStore::new(), breaker());
    breaker.permit().unwrap().failed();
    assert_eq!(both(&dlq, &breaker, true).await, Ok(7));
    assert_eq!(letters(&dlq).await, []);
    assert!(refused(&both(&dlq, &breaker, false).await));
    assert!(refused(&parks(&dlq, &breaker)));
    let letters = letters(&dlq).await;
    let letter = letters.iter().find(|letter| letter.kind == "parks").unwrap();
    assert_eq!((letter.reason, letter.attempts), (StopReason::BreakerOpen, 0));
    assert_eq!(letter.error_class, "breaker_open");
    assert!(letter.error_message.starts_with("breaker open for another"), "{}", letter.error_message);
    let both = letters.iter().find(|letter| letter.kind != "parks").unwrap();
    assert_eq!((both.reason, both.attempts), (StopReason::BreakerOpen, 1), "the fallback was one");
}

// 9.1: the second route after a denial
#[test]
fn a_denied_retry_falls_back() {
    #[retry(budget = Arc::new(tokens(0)), fallback = { assert_eq!(error, E::Busy); Ok(7) })]
    fn call() -> Result<u32, E> {
        Err(E::Busy)
    }
    assert_eq!(call(), Ok(7));
}

// 6.2: the knob with its value
#[test]
fn the_report_names_the_limit() {
    #[retry(budget = budget, breaker = breaker)]
    fn call(budget: &Budget, breaker: &CircuitBreaker, error: &E) -> Result<u32, GaveUp<E>> {
        Err(error.clone())
    }
    let budget = Budget::new().min_per_second(0).ratio(0.3);
    budget.succeeded();
    let denied = call(&budget, &CircuitBreaker::new(), &E::Slow).unwrap_err();
    let text = denied.to_string();
    assert!(text.ends_with("the retry budget has 0.300 tokens left, and a retry takes 2; last error: slow"), "{text}");
    let open = breaker();
    assert_eq!(call(&budget, &open, &E::Busy).unwrap_err().attempts(), 1);
    let refused = call(&budget, &open, &E::Busy).unwrap_err();
    assert_eq!((refused.attempts(), refused.last()), (0, None));
    let text = refused.to_string();
    assert!(text.contains("0 attempts") && text.contains("breaker open for another"), "{text}");
    let builder = Retry::new(Policy::new()).breaker(&open).run_blocking_reporting(|| Err::<u32, _>(E::Busy));
    assert_eq!(builder.unwrap_err().reason(), StopReason::BreakerOpen);
}

// The forms of a shared value, evaluated once per call.
#[tokio::test(start_paused = true)]
async fn borrowed_static_and_owned_ones_are_taken() {
    static BUDGET: Budget = Budget::new().capacity(0);
    static BREAKER: CircuitBreaker = CircuitBreaker::new();
    static HOSTS: Budgets<String> = Budgets::new(|| Budget::new().capacity(0));

    struct Client {
        budget: Arc<Budget>,
        breaker: Arc<CircuitBreaker>,
        asked: Cell<u32>,
    }

    impl Client {
        fn budget(&self) -> &Arc<Budget> {
            self.asked.set(self.asked.get() + 1);
            &self.budget
        }

        #[retry(name = "client.get", budget = self.budget(), breaker = self.breaker.clone())]
        fn get(&self) -> Result<u32, E> {
            Err(E::Busy)
        }
    }

    #[retry(budget = &BUDGET, breaker = &BREAKER)]
    async fn statics() -> Result<u32, E> {
        Err(E::Busy)
    }

    #[retry(budget = HOSTS.get(host))]
    async fn keyed(host: &str) -> Result<u32, E> {
        Err(E::Busy)
    }

    fn send<T: Send>(value: T) -> T {
        value
    }

    let _waits = VirtualWaits::start();
    let client = Client { budget: Arc::new(tokens(9)), breaker: Arc::default(), asked: Cell::new(0) };
    assert_eq!(client.get(), Err(E::Busy));
    assert_eq!((client.budget.milli_tokens(), client.asked.get()), (7000, 1));
    assert_eq!(send(statics()).await, Err(E::Busy));
    assert_eq!(send(keyed("example.com")).await, Err(E::Busy));
    assert_eq!((BUDGET.denied(), HOSTS.get("example.com").denied()), (1, 1));
    let retry = Retry::new(Policy::new()).budget(Arc::clone(&client.budget)).breaker(Arc::clone(&client.breaker));
    assert_eq!(send(retry.run(|| async { Err::<u32, _>(E::Busy) })).await, Err(E::Busy));
    assert_eq!(client.budget.milli_tokens(), 5000);
}

// 3.3, 5.2: an attempt that is cut off is a failure of the dependency, and costs as a timeout does
#[tokio::test(start_paused = true)]
async fn a_timeout_costs_two_and_counts_for_the_breaker() {
    #[retry(budget = budget, breaker = breaker, attempt_timeout = "1s")]
    async fn call(budget: &Budget, breaker: &CircuitBreaker) -> Result<u32, GaveUp<E>> {
        std::future::pending().await
    }
    let (budget, breaker) = (tokens(3), breaker().min_calls(2));
    let end = call(&budget, &breaker).await.unwrap_err();
    assert_eq!((end.reason(), end.attempts(), budget.milli_tokens()), (StopReason::BreakerOpen, 2, 1000));
}

// 5.3: a classifier that panics says nothing about the dependency
#[test]
fn a_classifier_that_panics_is_no_verdict() {
    fn panics(_: &E) -> retry_runtime::Verdict {
        resume_unwind(Box::new("the classifier panicked"))
    }
    #[retry(breaker = breaker, classify = panics)]
    fn call(breaker: &CircuitBreaker) -> Result<u32, E> {
        Err(E::Busy)
    }
    let breaker = breaker();
    assert_eq!(call(&breaker), Err(E::Busy));
    assert_eq!(breaker.phase(), BreakerPhase::Closed);
}

// an `Arc` is taken by the attribute and by the builder, by itself and borrowed
#[test]
fn a_shared_budget_and_breaker_are_taken_in_every_form() {
    #[retry(budget = budget, breaker = breaker, max_retries = 1)]
    fn owned(budget: Arc<Budget>, breaker: Arc<CircuitBreaker>) -> Result<u8, E> {
        Ok(1)
    }
    #[retry(budget = &budget, breaker = &breaker, max_retries = 1)]
    fn borrowed(budget: &Arc<Budget>, breaker: &Arc<CircuitBreaker>) -> Result<u8, E> {
        Ok(1)
    }
    #[retry(budget = Arc::clone(budget), breaker = &*Arc::clone(breaker), max_retries = 1)]
    fn made(budget: &Arc<Budget>, breaker: &Arc<CircuitBreaker>) -> Result<u8, E> {
        Ok(1)
    }
    let budget = Arc::new(Budget::new().min_per_second(0).ratio(1.0));
    let breaker = Arc::new(CircuitBreaker::new());
    assert!(owned(Arc::clone(&budget), Arc::clone(&breaker)).is_ok());
    assert!(borrowed(&budget, &breaker).is_ok() && made(&budget, &breaker).is_ok());
    let by_builder: Result<u8, E> = Retry::new(Policy::new()).budget(&budget).breaker(&breaker).run_blocking(|| Ok(1));
    assert!(by_builder.is_ok());
    assert_eq!((budget.milli_tokens(), breaker.state().calls), (4000, 4));
}
