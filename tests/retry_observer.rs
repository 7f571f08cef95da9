//! `observer = EXPR` from the outside: every event of a call, in order, through every face.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::cell::Cell;
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use retry_runtime::dead_letter::{DeadLetter, MemoryStore, Parking, Ticket};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::observe::{Event, Observer, What, from_fn, observer_panics};
use retry_runtime::reply::Reply;
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{
    Budget, CircuitBreaker, ClassLimits, Classify, DeadLetterSink, GaveUp, Policy, Refused, Retry, retry, retrying,
};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("slow down")]
    #[classify(with = limited)]
    Limited,
    #[error("denied")]
    #[classify(permanent)]
    Denied,
    #[error("gone")]
    #[classify(gone)]
    Gone,
    #[error(transparent)]
    #[classify(transparent)]
    Refused(#[from] Refused),
}

fn limited(_: &E) -> retry_runtime::Verdict {
    retry_runtime::Verdict::retryable("rate_limit").code(429)
}

/// Writes down what it is told: name, attempt and maximum, class and code, and what the event has besides.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Observer for Seen {
    fn on(&self, event: &Event<'_>) {
        let code = event.code.map(|code| format!(":{code}")).unwrap_or_default();
        let besides = match event.what {
            What::RetryScheduled { delay, .. } => Some(format!("{delay:?}")),
            What::Fallback { succeeded, .. } => Some(if succeeded { "ok" } else { "failed" }.to_owned()),
            What::GivenUp { unfinished: true, .. } => Some("unfinished".to_owned()),
            _ => None,
        };
        let parts = [
            Some(format!("{} {}/{}", event.name(), event.attempt, event.max_attempts.unwrap_or(0))),
            event.class.map(|class| format!("{class}{code}")),
            besides,
            event.reason().map(|reason| reason.to_string()),
            event.job_id.map(|job_id| format!("job {job_id}")),
        ];
        let line = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        self.0.lock().unwrap().push(line);
    }
}

impl Seen {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Outcomes in order; the last one again and again.
struct Script(Vec<Result<u32, E>>, Cell<usize>);

impl Script {
    fn next(&self) -> Result<u32, E> {
        let at = self.1.replace(self.1.get() + 1);
        self.0[at.min(self.0.len() - 1)].clone()
    }
}

fn paused<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(future)
}

type Face = fn(&Seen, &Script) -> Result<u32, E>;

const FACES: &[(&str, Face)] = &[
    ("attribute", |seen, script| {
        #[retry(class(rate_limit, max_retries = 4), observer = seen)]
        async fn call(seen: &Seen, script: &Script) -> Result<u32, E> {
            script.next()
        }
        paused(call(seen, script))
    }),
    ("attribute, blocking", |seen, script| {
        #[retry(class(rate_limit, max_retries = 4), observer = seen)]
        fn call(seen: &Seen, script: &Script) -> Result<u32, E> {
            script.next()
        }
        call(seen, script)
    }),
    ("attribute, with a report", |seen, script| {
        #[retry(class(rate_limit, max_retries = 4), observer = seen)]
        async fn call(seen: &Seen, script: &Script) -> Result<u32, GaveUp<E>> {
            script.next()
        }
        paused(call(seen, script)).map_err(|gave_up| gave_up.into_last().unwrap())
    }),
    ("retrying!", |seen, script| {
        paused(async {
            retrying!(class(rate_limit, max_retries = 4), observer = seen; async -> Result<u32, E> { script.next() })
        })
    }),
    (
        "retrying!, blocking",
        |seen, script| retrying!(class(rate_limit, max_retries = 4), observer = seen; -> Result<u32, E> { script.next() }),
    ),
    ("builder", |seen, script| {
        let retry = Retry::new(Policy::new()).class("rate_limit", ClassLimits::new().max_retries(4)).observer(seen);
        paused(retry.run(|| async { script.next() }))
    }),
    ("builder, blocking", |seen, script| {
        let retry = Retry::new(Policy::new()).class("rate_limit", ClassLimits::new().max_retries(4)).observer(seen);
        retry.run_blocking(|| script.next())
    }),
];

fn every_face(outcomes: &[Result<u32, E>], expected: &[&str]) {
    for (name, face) in FACES {
        let (seen, _waits) = (Seen::default(), VirtualWaits::start());
        let script = Script(outcomes.to_vec(), Cell::new(0));
        let end = face(&seen, &script);
        assert_eq!(end, outcomes[outcomes.len() - 1], "{name}");
        assert_eq!(seen.take(), expected, "{name}");
    }
}

// 12.1, 1.1: attempt of max; the largest number of any class is the most that can be
#[test]
fn every_face_tells_every_event_once_and_in_order() {
    every_face(&[Ok(1)], &["attempt_started 1/5", "succeeded 1/5"]);
    every_face(
        &[Err(E::Busy), Err(E::Limited), Ok(1)],
        &[
            "attempt_started 1/5",
            "attempt_failed 1/5 busy",
            "retry_scheduled 1/5 busy 1s",
            "attempt_started 2/5 busy",
            "attempt_failed 2/5 rate_limit:429",
            "retry_scheduled 2/5 rate_limit:429 2s",
            "attempt_started 3/5 rate_limit:429",
            "recovered 3/5 rate_limit:429",
        ],
    );
    every_face(
        &[Err(E::Busy)],
        &[
            "attempt_started 1/5",
            "attempt_failed 1/5 busy",
            "retry_scheduled 1/5 busy 1s",
            "attempt_started 2/5 busy",
            "attempt_failed 2/5 busy",
            "retry_scheduled 2/5 busy 2s",
            "attempt_started 3/5 busy",
            "attempt_failed 3/5 busy",
            "gave_up 3/5 busy exhausted",
        ],
    );
    every_face(
        &[Err(E::Denied)],
        &["attempt_started 1/5", "attempt_failed 1/5 denied", "gave_up 1/5 denied permanent"],
    );
    every_face(&[Err(E::Gone)], &["attempt_started 1/5", "attempt_failed 1/5 gone", "gave_up 1/5 gone gone"]);
}

// 12.1: times in events
#[tokio::test(start_paused = true)]
async fn events_know_how_long_it_took() {
    #[retry(base_delay = "3s", max_retries = 1, observer = observer)]
    async fn call(observer: impl Observer) -> Result<u32, E> {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Err(E::Busy)
    }
    let times = Mutex::new(Vec::new());
    let observer = from_fn(|event: &Event<'_>| {
        let took = match event.what {
            What::AttemptFailed { took, .. } => took.as_secs(),
            _ => 0,
        };
        times.lock().unwrap().push((event.name(), event.elapsed.as_secs(), took, event.call));
    });
    assert_eq!(call(&observer).await, Err(E::Busy));
    assert_eq!(call(&observer).await, Err(E::Busy));
    let times = times.lock().unwrap();
    let of_one: Vec<_> = times.iter().take(6).map(|(name, elapsed, took, _)| (*name, *elapsed, *took)).collect();
    let expected = [
        ("attempt_started", 0, 0),
        ("attempt_failed", 2, 2),
        ("retry_scheduled", 2, 0),
        ("attempt_started", 5, 0),
        ("attempt_failed", 7, 2),
        ("gave_up", 7, 0),
    ];
    assert_eq!(of_one, expected);
    // one number for each call
    assert!(times[..6].iter().all(|event| event.3 == times[0].3) && times[6].3 != times[0].3);
}

// 1.2: an attempt that is refused is none, but an event
#[tokio::test(start_paused = true)]
async fn a_refused_attempt_is_an_event() {
    let seen = Seen::default();
    let first = ["attempt_started 1/3", "attempt_failed 1/3 busy"];

    let empty = Budget::new().capacity(0);
    let end = Retry::new(Policy::new()).budget(&empty).observer(&seen).run(|| async { Err::<u32, _>(E::Busy) }).await;
    assert_eq!(end, Err(E::Busy));
    assert_eq!(
        seen.take(),
        [&first[..], &["refused 1/3 busy budget_denied", "gave_up 1/3 busy budget_denied"]].concat()
    );

    let breaker = CircuitBreaker::new().min_calls(1);
    for expected in [
        [&first[..], &["refused 1/3 busy breaker_open", "gave_up 1/3 busy breaker_open"]].concat(),
        vec!["refused 0/3 breaker_open", "gave_up 0/3 breaker_open"],
    ] {
        let retry = Retry::new(Policy::new()).breaker(&breaker).observer(&seen);
        assert!(retry.run(|| async { Err::<u32, _>(E::Busy) }).await.is_err());
        assert_eq!(seen.take(), expected);
    }

    let short = Retry::new(Policy::new()).deadline(Duration::from_millis(500)).observer(&seen);
    assert!(short.run(|| async { Err::<u32, _>(E::Busy) }).await.is_err());
    assert_eq!(seen.take(), [&first[..], &["refused 1/3 busy deadline", "gave_up 1/3 busy deadline"]].concat());
}

// 12.1: what the budget held when it was last asked
#[test]
fn events_know_what_the_budget_holds() {
    let budget = Budget::new().min_per_second(0).ratio(1.0);
    (0..3).for_each(|_| budget.succeeded());
    let seen = Mutex::new(Vec::new());
    let observer = from_fn(|event: &Event<'_>| seen.lock().unwrap().push((event.name(), event.milli_tokens)));
    let script = Script(vec![Err(E::Busy), Err(E::Busy), Ok(7)], Cell::new(0));
    let _waits = VirtualWaits::start();
    assert_eq!(Retry::new(Policy::new()).budget(&budget).observer(&observer).run_blocking(|| script.next()), Ok(7));
    let expected = [
        ("attempt_started", None),
        ("attempt_failed", None),
        ("retry_scheduled", Some(2000)),
        ("attempt_started", Some(2000)),
        ("attempt_failed", Some(2000)),
        ("retry_scheduled", Some(1000)),
        ("attempt_started", Some(1000)),
        ("recovered", Some(2000)),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

// 3.4: before an attempt, in its middle, and in a wait
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_gives_up() {
    #[retry(observer = seen, cancel = tokio::time::sleep(Duration::from_millis(after)))]
    async fn call(seen: &Seen, after: u64, hangs: bool) -> Result<u32, E> {
        if hangs {
            pending::<()>().await;
        }
        Err(E::Busy)
    }
    let seen = Seen::default();
    let ready = Retry::new(Policy::new()).observer(&seen).cancel(std::future::ready(()));
    assert!(ready.run(|| async { Err::<u32, _>(E::Busy) }).await.is_err());
    assert_eq!(seen.take(), ["refused 0/3 cancelled", "gave_up 0/3 cancelled"]);
    assert!(call(&seen, 500, true).await.is_err());
    assert_eq!(seen.take(), ["attempt_started 1/3", "gave_up 1/3 unfinished cancelled"]);
    assert!(call(&seen, 500, false).await.is_err());
    let wait = ["attempt_failed 1/3 busy", "retry_scheduled 1/3 busy 1s", "refused 1/3 busy cancelled"];
    assert_eq!(seen.take()[1..], [&wait[..], &["gave_up 1/3 busy cancelled"]].concat());
}

// 3.3, 5.7: an attempt that ran out of time, and a value that is rejected
#[tokio::test(start_paused = true)]
async fn timeouts_and_rejected_values_are_failures() {
    #[retry(max_retries = 0, attempt_timeout = "1s", observer = seen)]
    async fn slow(seen: &Seen) -> Result<u32, GaveUp<E>> {
        pending().await
    }
    #[retry(max_retries = 0, retry_ok(0), observer = seen)]
    fn zero(seen: &Seen) -> Result<u32, E> {
        Ok(0)
    }
    #[retry(deadline = "2s", observer = seen, attempt_timeout = "2s")]
    async fn late(seen: &Seen) -> Result<u32, GaveUp<E>> {
        tokio::time::sleep(Duration::from_millis(500)).await;
        pending().await
    }
    let seen = Seen::default();
    assert!(slow(&seen).await.is_err());
    assert_eq!(seen.take()[1..], ["attempt_failed 1/1 timeout", "gave_up 1/1 timeout exhausted"]);
    assert_eq!(zero(&seen), Ok(0));
    assert_eq!(seen.take()[1..], ["attempt_failed 1/1 rejected_value", "gave_up 1/1 rejected_value exhausted"]);
    assert!(late(&seen).await.is_err());
    // 3.2: nothing is left to wait
    assert_eq!(
        seen.take()[1..],
        ["attempt_failed 1/3 timeout", "refused 1/3 timeout deadline", "gave_up 1/3 timeout deadline"]
    );
}

// 9.1, 9.2: one ending, and it is the second route's
#[tokio::test]
async fn a_fallback_is_one_event() {
    #[retry(max_retries = 0, observer = seen, fallback = second.clone(), dead_letter(sink = dlq, job_id = "a"))]
    async fn both(seen: &Seen, dlq: &MemoryStore, first: E, second: Result<u32, E>) -> Result<u32, E> {
        Err(first.clone())
    }
    let (seen, dlq) = (Seen::default(), MemoryStore::new());
    let first = ["attempt_started 1/1", "attempt_failed 1/1 busy"];
    assert_eq!(both(&seen, &dlq, E::Busy, Ok(7)).await, Ok(7));
    assert_eq!(seen.take(), [&first[..], &["fallback 2/1 busy ok exhausted"]].concat());
    assert_eq!(both(&seen, &dlq, E::Busy, Err(E::Denied)).await, Err(E::Denied));
    let failed = ["fallback 2/1 denied failed exhausted", "gave_up 2/1 denied exhausted"];
    let parked = ["parked 2/1 denied exhausted job a"];
    assert_eq!(seen.take(), [&first[..], &failed, &parked].concat());
    assert_eq!(both(&seen, &dlq, E::Busy, Err(E::Gone)).await, Err(E::Gone));
    assert_eq!(seen.take(), [&first[..], &["fallback 2/1 gone failed exhausted", "gave_up 2/1 gone gone"]].concat());
    // 9.1: what is gone has no second route
    assert_eq!(both(&seen, &dlq, E::Gone, Ok(7)).await, Err(E::Gone));
    assert_eq!(seen.take()[2..], ["gave_up 1/1 gone gone"]);
}

/// Takes no letter, and spills it or not.
struct Full(bool);

impl DeadLetterSink for Full {
    fn submit(&self, _: DeadLetter) -> Ticket {
        let because = StoreError::new(StoreErrorKind::Full, "no space left");
        Reply::ready(if self.0 { Parking::Spilled { path: "x".into(), because } } else { Parking::Lost { because } })
    }
}

// 11.2, 12.1: what became of the letter
#[tokio::test]
async fn a_letter_is_one_event() {
    #[retry(name = "a", observer = seen, dead_letter(sink = sink, job_id = 7))]
    async fn asynchronous(seen: &Seen, sink: impl DeadLetterSink) -> Result<u32, E> {
        Err(E::Denied)
    }
    #[retry(name = "b", observer = seen, dead_letter(sink = sink, job_id = 7))]
    fn blocking(seen: &Seen, sink: &dyn DeadLetterSink) -> Result<u32, E> {
        Err(E::Denied)
    }
    let seen = Seen::default();
    for (sink, expected) in [
        (&MemoryStore::new() as &dyn DeadLetterSink, "parked 1/3 denied permanent job 7"),
        (&Full(true), "spilled 1/3 denied permanent job 7"),
        (&Full(false), "park_failed 1/3 denied permanent job 7"),
    ] {
        assert!(asynchronous(&seen, sink).await.is_err());
        assert_eq!(seen.take()[2..], ["gave_up 1/3 denied permanent", expected]);
        assert!(blocking(&seen, sink).is_err());
        assert_eq!(seen.take()[2..], ["gave_up 1/3 denied permanent", expected]);
    }
}

// 11.7: refused by the ledger
#[test]
fn a_call_that_the_ledger_refuses_ends_there() {
    #[retry(observer = seen, ledger(store = ledger, key = "k", skipped = Ok(0)))]
    fn once(seen: &Seen, ledger: &MemoryStore) -> Result<u32, E> {
        Ok(1)
    }
    let (seen, ledger) = (Seen::default(), MemoryStore::new());
    assert_eq!(once(&seen, &ledger), Ok(1));
    assert_eq!(seen.take(), ["attempt_started 1/3", "succeeded 1/3"]);
    assert_eq!(once(&seen, &ledger), Ok(0));
    assert_eq!(seen.take(), ["refused 0/3 ledger_refused"]);
}

#[retry(observer = seen)]
async fn hangs(seen: &Seen, panics: bool) -> Result<u32, E> {
    if panics {
        resume_unwind(Box::new("the body panicked"));
    }
    if seen.0.lock().unwrap().len() == 1 {
        return Err(E::Busy);
    }
    pending().await
}

// 11.3: at every place where the future can be dropped
#[tokio::test(start_paused = true)]
async fn a_dropped_call_gives_up() {
    let seen = Seen::default();
    drop(hangs(&seen, false));
    assert_eq!(seen.take(), [""; 0], "what was never polled was never begun");
    {
        let mut in_its_wait = pin!(hangs(&seen, false));
        assert!(in_its_wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let failed = ["attempt_started 1/3", "attempt_failed 1/3 busy", "retry_scheduled 1/3 busy 1s"];
    assert_eq!(seen.take(), [&failed[..], &["gave_up 1/3 busy dropped"]].concat());
    assert!(tokio::time::timeout(Duration::from_secs(5), hangs(&seen, false)).await.is_err());
    assert_eq!(seen.take()[3..], ["attempt_started 2/3 busy", "gave_up 2/3 busy unfinished dropped"]);
}

// 11.3: the panic goes on, and is told of
#[tokio::test]
async fn a_body_that_panics_gives_up() {
    #[retry(observer = seen)]
    fn blocking(seen: &Seen) -> Result<u32, E> {
        resume_unwind(Box::new("the body panicked"))
    }
    #[retry(name = "parks", observer = seen, dead_letter(sink = dlq, job_id = "a"))]
    fn parks(seen: &Seen, dlq: &MemoryStore) -> Result<u32, E> {
        resume_unwind(Box::new("the body panicked"))
    }
    let seen = Seen::default();
    let told = ["attempt_started 1/3", "attempt_failed 1/3 panicked", "gave_up 1/3 panicked panicked"];
    assert!(catch_unwind(AssertUnwindSafe(|| blocking(&seen))).is_err());
    assert_eq!(seen.take(), told);
    assert!(catch_unwind(AssertUnwindSafe(|| paused_in_thread(&seen))).is_err());
    assert_eq!(seen.take(), told);
    let panics = || -> Result<u32, E> { resume_unwind(Box::new("panic")) };
    let builder = || Retry::new(Policy::new()).observer(&seen).run_blocking(panics);
    assert!(catch_unwind(AssertUnwindSafe(builder)).is_err());
    assert_eq!(seen.take(), told);
    // and its letter
    assert!(catch_unwind(AssertUnwindSafe(|| parks(&seen, &MemoryStore::new()))).is_err());
    assert_eq!(seen.take(), [&told[..], &["parked 1/3 panicked panicked job a"]].concat());
}

// 11.3, 12.1: nobody waits for these letters, and yet the call's own observer hears what is known at once
#[tokio::test(start_paused = true)]
async fn letters_that_a_guard_parks_are_told_of() {
    #[retry(name = "parks", observer = seen, dead_letter(sink = dlq, job_id = "a"))]
    async fn parks(seen: &Seen, dlq: &MemoryStore, panics: bool) -> Result<u32, E> {
        if panics {
            resume_unwind(Box::new("the body panicked"))
        }
        pending().await
    }
    let (seen, dlq) = (Seen::default(), MemoryStore::new());
    assert!(tokio::time::timeout(Duration::from_secs(5), parks(&seen, &dlq, false)).await.is_err());
    assert_eq!(
        seen.take(),
        ["attempt_started 1/3", "gave_up 1/3 unfinished dropped", "parked 1/3 dropped job a"],
        "dropped"
    );
    let panicked = AssertUnwindSafe(parks(&seen, &dlq, true));
    assert!(futures_util::FutureExt::catch_unwind(panicked).await.is_err());
    let told = ["attempt_started 1/3", "attempt_failed 1/3 panicked", "gave_up 1/3 panicked panicked"];
    assert_eq!(seen.take(), [&told[..], &["parked 1/3 panicked panicked job a"]].concat());
}

// 11.3: a panic elsewhere is not the body's
#[test]
fn a_call_that_is_dropped_by_a_panic_elsewhere_is_dropped() {
    let seen = Seen::default();
    let panics = AssertUnwindSafe(|| {
        let mut in_its_attempt = pin!(hangs(&seen, false));
        seen.take();
        let mut cx = Context::from_waker(Waker::noop());
        seen.0.lock().unwrap().push("something".to_owned());
        assert!(in_its_attempt.as_mut().poll(&mut cx).is_pending());
        resume_unwind(Box::new("elsewhere"))
    });
    assert!(catch_unwind(panics).is_err());
    assert_eq!(seen.take()[1..], ["attempt_started 1/3", "gave_up 1/3 unfinished dropped"]);
}

fn paused_in_thread(seen: &Seen) {
    std::thread::scope(|scope| {
        let end = scope.spawn(|| paused(hangs(seen, true))).join();
        end.map_or_else(|panic| resume_unwind(panic), drop);
    });
}

// 12.2: a panic in an observer changes nothing, and the others are told all the same
#[test]
fn an_observer_that_panics_changes_nothing() {
    struct Broken;
    impl Observer for Broken {
        fn on(&self, _: &Event<'_>) {
            resume_unwind(Box::new("the observer panicked"))
        }
    }
    #[retry(max_retries = 1, observer = (&Broken, seen, vec![Broken, Broken]), dead_letter(sink = dlq))]
    fn call(seen: &Seen, dlq: &MemoryStore) -> Result<u32, E> {
        Err(E::Busy)
    }
    let (seen, dlq, _waits) = (Seen::default(), MemoryStore::new(), VirtualWaits::start());
    let before = observer_panics();
    assert_eq!(call(&seen, &dlq), Err(E::Busy));
    let told = seen.take();
    assert_eq!(told.len(), 7, "{told:?}");
    assert_eq!(observer_panics() - before, 3 * 7);
}

// The forms of an observer, evaluated once per call.
#[tokio::test(start_paused = true)]
async fn borrowed_owned_and_boxed_ones_are_taken() {
    struct Client {
        seen: Arc<Seen>,
        asked: Cell<u32>,
    }

    impl Client {
        fn observer(&self) -> Arc<dyn Observer> {
            self.asked.set(self.asked.get() + 1);
            self.seen.clone()
        }

        #[retry(name = "client.get", max_retries = 1, observer = self.observer())]
        async fn get(&self) -> Result<u32, E> {
            Err(E::Busy)
        }

        #[retry(max_retries = 0, observer = (Some(&*self.seen), None::<&Seen>, [Box::new(&*self.seen)]))]
        fn all(&self) -> Result<u32, E> {
            Err(E::Busy)
        }
    }

    fn send<T: Send>(value: T) -> T {
        value
    }

    #[retry(max_retries = 0, observer = observer)]
    async fn spawned(observer: Arc<Seen>) -> Result<u32, E> {
        Err(E::Busy)
    }

    let client = Client { seen: Arc::default(), asked: Cell::new(0) };
    assert_eq!(client.get().await, Err(E::Busy));
    assert_eq!((client.seen.take().len(), client.asked.get()), (6, 1));
    assert_eq!(client.all(), Err(E::Busy));
    assert_eq!(client.seen.take().len(), 6, "three events, each told twice");
    assert_eq!(send(spawned(client.seen.clone())).await, Err(E::Busy));
    let owned: Arc<dyn Observer> = client.seen.clone();
    let builder = || Retry::new(Policy::new().max_retries(0));
    for retry in [
        builder().observer(&*client.seen),
        builder().observer(client.seen.clone()),
        builder().observer(owned.clone()),
        builder().observer(&*owned),
    ] {
        assert_eq!(send(retry.run(|| async { Err::<u32, _>(E::Busy) })).await, Err(E::Busy));
    }
    assert_eq!(client.seen.take().len(), 15);
}

// 1.1: through the macro: the number of another class, and a fallback, are not in "of how many"
#[test]
fn a_call_that_gave_up_says_out_of_how_many_attempts() {
    #[retry(name = "plain", max_retries = 2, class(rate_limit, max_retries = 4), observer = seen)]
    fn plain(seen: &dyn Observer) -> Result<u32, E> {
        Err(E::Busy)
    }
    #[retry(name = "second route", max_retries = 1, fallback = Err(E::Denied), observer = seen)]
    fn second_route(seen: &dyn Observer) -> Result<u32, E> {
        Err(E::Busy)
    }
    let lines = Mutex::new(Vec::new());
    let seen = from_fn(|event: &Event<'_>| {
        if let What::GivenUp { .. } = event.what {
            let line = event.to_string();
            lines.lock().unwrap().push(line.split(" in ").next().unwrap().to_owned());
        }
    });
    let _waits = VirtualWaits::start();
    assert_eq!((plain(&seen), second_route(&seen)), (Err(E::Busy), Err(E::Denied)));
    let expected = ["plain: gave up after 3 attempts", "second route: gave up after 2 of 2 attempts and the fallback"];
    assert_eq!(*lines.lock().unwrap(), expected);
}
