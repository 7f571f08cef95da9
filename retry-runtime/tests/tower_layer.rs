//! The layer for tower: the engine's rules around a service, and the service's rules inside.
#![cfg(feature = "tower")]
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking

use std::error::Error;
use std::fmt;
use std::future::{Future, Pending, Ready, pending, poll_fn, ready};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use retry_runtime::observe::{Event, What, from_fn, set_listener};
use retry_runtime::tower::RetryLayer;
use retry_runtime::{BreakerPhase, Budget, CircuitBreaker, Classify, Policy, Refused, StopReason, Verdict};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Busy,
    Slow,
    Lost,
    Refused,
    NotReady,
    Stopped(StopReason),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Error for Fault {}

impl Classify for Fault {
    fn classify(&self) -> Verdict {
        match self {
            Self::Busy | Self::NotReady => Verdict::retryable("busy"),
            Self::Slow => Verdict::retryable("timeout"),
            Self::Lost => Verdict::retryable("connection").outcome_unknown(),
            Self::Refused | Self::Stopped(_) => Verdict::permanent("refused"),
        }
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        Self::Stopped(refused.reason())
    }
}

/// A service that must be polled ready before each call, as the trait demands: each of its clones anew.
struct Scripted<R, E> {
    shared: Arc<Shared<R, E>>,
    polls: u32,
}

struct Shared<R, E> {
    outcomes: Mutex<Vec<Result<R, E>>>,
    /// Polls until it is ready.
    needs_polls: u32,
    /// What polling gives instead, in turn.
    unready: Mutex<Vec<E>>,
    calls: AtomicU32,
    called_unready: AtomicU32,
}

impl<R, E> Scripted<R, E> {
    /// Gives these outcomes in turn.
    fn new(needs_polls: u32, outcomes: impl IntoIterator<Item = Result<R, E>>) -> Self {
        let mut outcomes: Vec<_> = outcomes.into_iter().collect();
        outcomes.reverse();
        let shared = Shared {
            outcomes: Mutex::new(outcomes),
            needs_polls,
            unready: Mutex::new(Vec::new()),
            calls: AtomicU32::new(0),
            called_unready: AtomicU32::new(0),
        };
        Self { shared: Arc::new(shared), polls: 0 }
    }

    fn calls(&self) -> u32 {
        assert_eq!(self.shared.called_unready.load(SeqCst), 0, "called without being ready");
        self.shared.calls.load(SeqCst)
    }
}

impl<R, E> Clone for Scripted<R, E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), polls: 0 }
    }
}

impl<R, E> Service<&'static str> for Scripted<R, E> {
    type Response = R;
    type Error = E;
    type Future = Ready<Result<R, E>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.polls += 1;
        if self.polls < self.shared.needs_polls {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.shared.unready.lock().unwrap().pop().map_or(Ok(()), Err))
    }

    fn call(&mut self, request: &'static str) -> Self::Future {
        assert_eq!(request, "request");
        if self.polls < self.shared.needs_polls {
            self.shared.called_unready.fetch_add(1, SeqCst);
        }
        self.polls = 0;
        self.shared.calls.fetch_add(1, SeqCst);
        ready(self.shared.outcomes.lock().unwrap().pop().unwrap())
    }
}

async fn call<S: Service<&'static str>>(service: &mut S) -> Result<S::Response, S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await?;
    service.call("request").await
}

fn policy() -> Policy {
    Policy::new().max_retries(3)
}

const BUSY: Result<u32, Fault> = Err(Fault::Busy);

#[tokio::test(start_paused = true)]
async fn it_waits_by_the_policy_and_polls_until_ready_before_each_attempt() {
    let inner = Scripted::new(3, [BUSY, BUSY, Ok(7)]);
    let begun = Instant::now();
    assert_eq!(call(&mut RetryLayer::new(policy()).layer(inner.clone())).await, Ok(7));
    assert_eq!(begun.elapsed().as_secs(), 3, "1 s and 2 s");
    assert_eq!(inner.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_last_error_is_what_the_caller_gets() {
    let inner = Scripted::new(1, [BUSY, Err(Fault::Lost)]);
    let mut service = RetryLayer::new(Policy::new().max_retries(1)).layer(inner.clone());
    assert_eq!(call(&mut service).await, Err(Fault::Lost));
    let inner = Scripted::new(1, [Err::<(), _>(Fault::Refused)]);
    assert_eq!(call(&mut RetryLayer::new(policy()).layer(inner.clone())).await, Err(Fault::Refused));
    assert_eq!(inner.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_readiness_is_the_attempts() {
    let inner = Scripted::new(1, [BUSY, Ok(1)]);
    let mut service = RetryLayer::new(policy()).layer(inner.clone());
    poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    let future = service.call("request");
    inner.shared.unready.lock().unwrap().push(Fault::NotReady);
    let begun = Instant::now();
    assert_eq!(future.await, Ok(1));
    assert_eq!(
        (inner.calls(), begun.elapsed().as_secs()),
        (2, 3),
        "the second of three attempts did not get to its call"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_side_by_side_have_a_service_and_a_session_each() {
    let inner = Scripted::new(2, std::iter::repeat_n(BUSY, 8));
    let mut service = RetryLayer::new(policy()).layer(inner.clone());
    poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    let one = service.call("request");
    poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    let other = service.call("request");
    assert_eq!(tokio::join!(one, other), (BUSY, BUSY));
    assert_eq!(inner.calls(), 8);
}

// 7.2
#[tokio::test(start_paused = true)]
async fn a_budget_stops_the_retries_of_all_calls() {
    let budget = Arc::new(Budget::new().min_per_second(1).window(Duration::from_secs(1)).ratio(0.0));
    let inner = Scripted::new(1, std::iter::repeat_n(BUSY, 9));
    let mut service =
        RetryLayer::new(policy().base_delay(Duration::ZERO)).budget(Arc::clone(&budget)).layer(inner.clone());
    assert_eq!(call(&mut service).await, BUSY);
    assert_eq!((inner.calls(), budget.denied()), (2, 1), "one token was there");
    assert_eq!(call(&mut service).await, BUSY);
    assert_eq!((inner.calls(), budget.denied()), (3, 2));
}

// 7.2
#[tokio::test(start_paused = true)]
async fn a_call_dropped_in_its_wait_gives_the_token_back() {
    let budget = Arc::new(Budget::new().min_per_second(0).ratio(10.0));
    budget.succeeded();
    let inner = Scripted::new(1, [BUSY]);
    let mut service = RetryLayer::new(policy()).budget(Arc::clone(&budget)).layer(inner.clone());
    let cut = tokio::time::timeout(Duration::from_millis(500), call(&mut service));
    assert!(cut.await.is_err());
    assert_eq!((inner.calls(), budget.milli_tokens()), (1, 10_000));
}

// 7.1: a first success pays in, a timeout takes two, and the last retry before a success gets its own back
#[tokio::test(start_paused = true)]
async fn it_pays_in_and_is_refunded() {
    let budget = Arc::new(Budget::new().min_per_second(0).ratio(1.0));
    (0..5).for_each(|_| budget.succeeded());
    let inner = Scripted::new(1, [Ok(1), Err(Fault::Slow), BUSY, Ok(2), BUSY, Err(Fault::Refused)]);
    let mut service = RetryLayer::new(policy()).budget(Arc::clone(&budget)).layer(inner.clone());
    for (end, left) in [(Ok(1), 6000), (Ok(2), 4000), (Err(Fault::Refused), 3000)] {
        assert_eq!((call(&mut service).await, budget.milli_tokens()), (end, left));
    }
}

/// It admits one call, as a probe.
fn half_open() -> Arc<CircuitBreaker> {
    let breaker = CircuitBreaker::new().min_calls(1).probes(1).open_for(Duration::ZERO);
    breaker.permit().unwrap().failed();
    Arc::new(breaker)
}

// 8.1, 8.2: a permanent failure is no verdict, a success is one
#[tokio::test(start_paused = true)]
async fn it_tells_the_breaker_what_came_of_an_attempt() {
    use BreakerPhase::{Closed, HalfOpen, Open};
    let breaker = half_open();
    let steps = [
        (Ok(1), Closed),
        (Err(Fault::Refused), Closed),
        (BUSY, Open),
        (Err(Fault::Refused), HalfOpen),
        (Ok(1), Closed),
    ];
    let inner = Scripted::new(1, steps.map(|(end, _)| end));
    let once = RetryLayer::new(Policy::new().max_retries(0)).breaker(Arc::clone(&breaker));
    let mut service = once.layer(inner.clone());
    for (end, phase) in steps {
        assert_eq!((call(&mut service).await, breaker.phase()), (end, phase));
    }
}

/// A service that never answers.
#[derive(Clone)]
struct Hangs;

impl Service<&'static str> for Hangs {
    type Response = u32;
    type Error = Fault;
    type Future = Pending<Result<u32, Fault>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: &'static str) -> Self::Future {
        pending()
    }
}

// 8.2: a call that is dropped, in its attempt or in its wait, says nothing and gives its permit back
#[tokio::test(start_paused = true)]
async fn a_dropped_call_gives_its_permit_back() {
    let breaker = half_open();
    let held = |service: &mut dyn FnMut(&mut Context<'_>) -> bool| {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(service(&mut cx), "it waits");
        assert!(breaker.permit().is_err(), "its place is taken");
    };
    {
        let mut service = RetryLayer::new(policy()).breaker(Arc::clone(&breaker)).layer(Hangs);
        let mut in_its_attempt = pin!(call(&mut service));
        held(&mut |cx| in_its_attempt.as_mut().poll(cx).is_pending());
    }
    assert!(breaker.permit().is_ok());
    {
        let mut service = RetryLayer::new(policy()).breaker(Arc::clone(&breaker)).layer(Scripted::new(1, [BUSY]));
        let mut in_its_wait = pin!(call(&mut service));
        held(&mut |cx| in_its_wait.as_mut().poll(cx).is_pending());
    }
    assert!(breaker.permit().is_ok());
    assert_eq!(breaker.phase(), BreakerPhase::HalfOpen);
}

// 8.1, 5.6
#[tokio::test(start_paused = true)]
async fn a_breaker_that_is_open_lets_nothing_through() {
    let breaker = Arc::new(CircuitBreaker::new().min_calls(1));
    let inner = Scripted::new(1, [BUSY, BUSY]);
    let mut service = RetryLayer::new(policy()).breaker(Arc::clone(&breaker)).layer(inner.clone());
    assert_eq!(call(&mut service).await, BUSY, "its own error, and no retry");
    assert_eq!(call(&mut service).await, Err(Fault::Stopped(StopReason::BreakerOpen)));
    assert_eq!((inner.calls(), breaker.refused()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn errors_in_boxes_are_known_and_have_a_value_for_a_refusal() {
    let breaker = Arc::new(CircuitBreaker::new().min_calls(1));
    let lost = || Err::<(), BoxError>(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into());
    let inner = Scripted::new(1, [lost(), lost()]);
    let mut service = RetryLayer::new(policy()).breaker(breaker).layer(inner.clone());
    assert!(call(&mut service).await.unwrap_err().is::<std::io::Error>());
    assert!(call(&mut service).await.unwrap_err().is::<Refused>());
    assert_eq!(inner.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_may_be_done_once_only_is_not_repeated_when_it_may_have_been_done() {
    let inner = Scripted::new(1, [BUSY, Err(Fault::Lost), Ok(1)]);
    let mut service = RetryLayer::new(policy()).idempotent(false).layer(inner.clone());
    assert_eq!(call(&mut service).await, Err(Fault::Lost));
    assert_eq!(inner.calls(), 2);
}

// 3.2
#[tokio::test(start_paused = true)]
async fn a_deadline_is_never_waited_past() {
    let inner = Scripted::new(1, std::iter::repeat_n(BUSY, 9));
    let begun = Instant::now();
    let mut service = RetryLayer::new(policy()).deadline(Duration::from_secs(2)).layer(inner.clone());
    assert_eq!(call(&mut service).await, BUSY);
    assert_eq!((inner.calls(), begun.elapsed().as_secs()), (2, 1));
}

// 12.1
#[tokio::test(start_paused = true)]
async fn an_observer_is_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
    let observer = Arc::new(from_fn(move |event: &Event<'_>| {
        if let What::AttemptFailed { .. } = event.what {
            log.lock().unwrap().push(event.operation.to_owned());
        }
    }));
    let inner = Scripted::new(1, [BUSY, Ok(1)]);
    let mut service = RetryLayer::new(policy()).name("search").observer(observer).layer(inner.clone());
    assert_eq!(call(&mut service).await, Ok(1));
    assert_eq!(*told.lock().unwrap(), ["search"]);
}

#[tokio::test(start_paused = true)]
async fn a_closure_judges_answers_too() {
    let inner = Scripted::new(1, [Ok(1), Err(Fault::Refused), Ok(2), Ok(3)]);
    let odd = |outcome: &Result<u32, Fault>| match outcome {
        Ok(number) => (number % 2 == 1).then_some(Verdict::retryable("odd")),
        Err(_) => Some(Verdict::retryable("any")),
    };
    assert_eq!(call(&mut RetryLayer::new(policy()).judge(odd).layer(inner.clone())).await, Ok(2));
    let mut once = RetryLayer::new(Policy::new().max_retries(0)).judge(odd).layer(inner.clone());
    assert_eq!(call(&mut once).await, Ok(3), "the last answer, as it is");
    assert_eq!(inner.calls(), 4);
}

#[cfg(feature = "http")]
mod http_answers {
    use http::Response;
    use retry_runtime::tower::Statuses;
    use retry_runtime::{StatusRules, Unknown};

    use super::*;

    #[allow(clippy::unnecessary_wraps)] // as a service gives it
    fn answer(status: u16, header: (&'static str, &'static str)) -> Result<Response<()>, Fault> {
        Ok(Response::builder().status(status).header(header.0, header.1).body(()).unwrap())
    }

    async fn status_of(inner: &Scripted<Response<()>, Fault>, retries: u32) -> u16 {
        let layer = RetryLayer::new(Policy::new().max_retries(retries)).judge(Statuses(StatusRules::HTTP));
        call(&mut layer.layer(inner.clone())).await.unwrap().status().as_u16()
    }

    const NONE: (&str, &str) = ("x-none", "");

    // 4.1
    #[tokio::test(start_paused = true)]
    async fn statuses_and_their_headers_decide() {
        let begun = Instant::now();
        let inner = Scripted::new(2, [answer(503, ("retry-after", "7")), Err(Fault::Busy), answer(200, NONE)]);
        assert_eq!((status_of(&inner, 2).await, inner.calls()), (200, 3));
        assert_eq!(begun.elapsed().as_secs(), 9, "7 s as asked, then 2 s");
        let inner = Scripted::new(1, [answer(500, NONE), answer(502, NONE)]);
        assert_eq!((status_of(&inner, 1).await, inner.calls()), (502, 2), "the last answer, as it is");
        for (status, header) in [(404, NONE), (400, NONE), (503, ("x-should-retry", "false")), (302, NONE)] {
            let inner = Scripted::new(1, [answer(status, header)]);
            assert_eq!((status_of(&inner, 2).await, inner.calls()), (status, 1));
        }
    }

    // A status that the table leaves open is a failure from 400 on, and none below.
    #[tokio::test(start_paused = true)]
    async fn an_unknown_answer_is_a_failure_from_400_on() {
        let layer = RetryLayer::new(Policy::new().max_retries(1)).unknown(Unknown::Retry);
        let layer = layer.judge(Statuses(StatusRules::HTTP));
        for (status, calls) in [(409, 2), (302, 1)] {
            let inner = Scripted::new(1, [answer(status, NONE), answer(status, NONE)]);
            let found = call(&mut layer.layer(inner.clone())).await.unwrap().status();
            assert_eq!((found.as_u16(), inner.calls()), (status, calls));
        }
    }
}

/// Calls can be spawned, and the service shared between tasks.
#[test]
fn futures_are_send() {
    fn send<T: Send>(_: &T) {}
    let mut service =
        RetryLayer::new(policy()).breaker(Arc::new(CircuitBreaker::new())).layer(Scripted::new(1, [BUSY]));
    send(&service);
    let mut polled = std::pin::pin!(poll_fn(|cx| service.poll_ready(cx)));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(polled.as_mut().poll(&mut cx).is_ready());
    send(&service.call("request"));
}

/// An error whose classifier panics.
#[derive(Debug, PartialEq)]
struct Unclear;

impl Classify for Unclear {
    fn classify(&self) -> Verdict {
        panic!("unclear")
    }
}

// 5.3: a judge that panics ends the call; the outcome is returned as it is, and a notice says so
#[tokio::test(start_paused = true)]
async fn a_judge_that_panics_decides_nothing() {
    static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    assert!(set_listener(|notice| HEARD.lock().unwrap().push(notice.to_string())));
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let observer = Arc::new(from_fn(move |event: &Event<'_>| {
        if let What::GivenUp { reason, .. } = event.what {
            tell.lock().unwrap().push(reason);
        }
    }));
    let broken = |_: &Result<u32, Fault>| -> Option<Verdict> { panic!("of the judge") };
    let layer = RetryLayer::new(policy()).name("judged").judge(broken).observer(observer);
    let inner = Scripted::new(1, [Ok(1), BUSY]);
    assert_eq!(call(&mut layer.layer(inner.clone())).await, Ok(1), "an answer too is returned as it is");
    assert_eq!(call(&mut layer.layer(inner.clone())).await, BUSY);
    assert_eq!(inner.calls(), 2, "neither was retried");
    assert_eq!(*told.lock().unwrap(), [StopReason::ClassifierFailed; 2]);
    let inner: Scripted<u32, Unclear> = Scripted::new(1, [Err(Unclear)]);
    assert_eq!(call(&mut RetryLayer::new(policy()).name("judged").layer(inner.clone())).await, Err(Unclear));
    assert_eq!(inner.calls(), 1);
    let heard = HEARD.lock().unwrap();
    let of_judge = |words: &str| {
        heard.iter().filter(|line| line.contains("classifier_failed [judged]") && line.contains(words)).count()
    };
    assert_eq!((of_judge("of the judge"), of_judge("unclear")), (2, 1), "{heard:#?}");
}
