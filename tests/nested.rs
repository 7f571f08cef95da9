//! `nested`: loops inside loops are told of or make a single attempt, through every face; and blocking waits where tasks run.
#![allow(clippy::unwrap_used, clippy::panic)] // a helper of a test fails as a test does
#![allow(clippy::items_after_statements)] // a function stands where it is tried

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use retry_runtime::observe::{Event, Level, Notice, Observer, from_fn, set_listener};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{
    ClassLimits, Classify, Elapsed, GaveUp, Nested, Policy, Refused, Retry, StopReason, retry, retrying,
};

#[derive(Debug, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("refused")]
    #[classify(permanent)]
    Refused,
}

impl From<Refused> for E {
    fn from(_: Refused) -> Self {
        Self::Refused
    }
}

impl From<Elapsed> for E {
    fn from(_: Elapsed) -> Self {
        Self::Refused
    }
}

/// Every notice of this process. The tests run at one time: each looks for its own operations.
static HEARD: Mutex<Vec<Notice>> = Mutex::new(Vec::new());

fn listen() {
    static LISTENS: OnceLock<bool> = OnceLock::new();
    assert!(LISTENS.get_or_init(|| set_listener(|notice| HEARD.lock().unwrap().push(notice.clone()))));
}

/// The messages of one notice about one operation.
fn heard(name: &str, operation: &str) -> Vec<String> {
    let heard = HEARD.lock().unwrap();
    let about = heard.iter().filter(|notice| notice.name == name && notice.operation == operation);
    about.inspect(|notice| assert_eq!(notice.level, Level::Warning)).map(|notice| notice.message.clone()).collect()
}

fn busy(calls: &Cell<u32>) -> Result<u32, E> {
    calls.set(calls.get() + 1);
    Err(E::Busy)
}

/// Runs on a paused clock.
fn paused<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(future)
}

/// A body that is called in each attempt.
type Body<'a> = &'a dyn Fn() -> Result<u32, E>;
/// A call of three attempts: its body may be another call.
type Face = fn(Body<'_>) -> Result<u32, E>;

/// Calls that look whether they are inside, and those that make a single attempt there.
type Faces = [(&'static str, Face, Face)];

/// Everything async runs on a runtime of its own, whatever it is called in: the marks are on the thread.
fn apart<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
            return out;
        }
    }
}

/// A wait of no time.
async fn at_once(_: Duration) {}

/// A wait without an end.
async fn never(_: Duration) {
    std::future::pending::<()>().await;
}

const QUICK: Policy = Policy::new();

const FACES: &Faces = &[
    (
        "attribute",
        |body| {
            #[retry(name = "attribute", nested = detect, sleep = at_once)]
            async fn call(body: Body<'_>) -> Result<u32, E> {
                body()
            }
            apart(call(body))
        },
        |body| {
            #[retry(name = "attribute, outer only", nested = outer_only, sleep = at_once)]
            async fn call(body: Body<'_>) -> Result<u32, E> {
                body()
            }
            apart(call(body))
        },
    ),
    (
        "attribute, limited",
        |body| {
            #[retry(name = "attribute, limited", nested = detect, sleep = at_once, attempt_timeout = "1m", cancel = std::future::pending::<()>())]
            async fn call(body: Body<'_>) -> Result<u32, E> {
                body()
            }
            apart(call(body))
        },
        |body| {
            #[retry(name = "attribute, limited, outer only", nested = outer_only, sleep = at_once, attempt_timeout = "1m", cancel = std::future::pending::<()>())]
            async fn call(body: Body<'_>) -> Result<u32, E> {
                body()
            }
            apart(call(body))
        },
    ),
    (
        "attribute, blocking",
        |body| {
            #[retry(name = "attribute, blocking")]
            fn call(body: Body<'_>) -> Result<u32, E> {
                body()
            }
            call(body)
        },
        |body| {
            #[retry(name = "attribute, blocking, outer only", nested = outer_only)]
            fn call(body: Body<'_>) -> Result<u32, E> {
                body()
            }
            call(body)
        },
    ),
    (
        "retrying!",
        |body| {
            apart(async {
                retrying!(name = "retrying!", nested = detect, sleep = at_once; async -> Result<u32, E> { body() })
            })
        },
        |body| {
            apart(async {
                retrying!(name = "retrying!, outer only", nested = outer_only, sleep = at_once; async -> Result<u32, E> { body() })
            })
        },
    ),
    (
        "retrying!, blocking",
        |body| retrying!(name = "retrying!, blocking"; -> Result<u32, E> { body() }),
        |body| retrying!(name = "retrying!, blocking, outer only", nested = outer_only; -> Result<u32, E> { body() }),
    ),
    (
        "builder",
        |body| {
            let retry = Retry::new(QUICK).name("builder").nested(Nested::Detect);
            apart(retry.run_with(at_once, || async { body() }))
        },
        |body| {
            let retry = Retry::new(QUICK).name("builder, outer only").nested(Nested::OuterOnly);
            apart(retry.run_with(at_once, || async { body() }))
        },
    ),
    (
        "builder, blocking",
        |body| Retry::new(QUICK).name("builder, blocking").run_blocking(body),
        |body| Retry::new(QUICK).name("builder, blocking, outer only").nested(Nested::OuterOnly).run_blocking(body),
    ),
];

// 10.1: every face in every face
#[test]
fn attempts_multiply_and_with_outer_only_they_do_not() {
    listen();
    let _waits = VirtualWaits::start();
    for (outer_name, outer, outer_only) in FACES {
        for (inner_name, inner, single) in FACES {
            let calls = Cell::new(0);
            assert_eq!(outer(&|| inner(&|| busy(&calls))), Err(E::Busy));
            assert_eq!(calls.replace(0), 9, "{inner_name} in {outer_name}");
            assert_eq!(outer(&|| single(&|| busy(&calls))), Err(E::Busy));
            assert_eq!(calls.replace(0), 3, "{inner_name}, outer only, in {outer_name}");
            // the word of the outer one is about a call around that
            assert_eq!(outer_only(&|| single(&|| busy(&calls))), Err(E::Busy));
            assert_eq!(calls.get(), 3, "{inner_name} in {outer_name}, both outer only");
        }
    }
    for (name, ..) in FACES {
        // 10.1: one warning per site
        let said = heard("nested_retry", name);
        assert_eq!(said.len(), 1, "{name}: {said:?}");
        let start = "this call retries inside an attempt of `attribute` (depth 1), so that their attempts multiply";
        assert!(said.iter().all(|said| said.starts_with(start)), "{said:?}");
        assert_eq!(heard("nested_retry", &format!("{name}, outer only")), [""; 0], "it does not multiply them");
    }
}

// 10.1: what is not inside of an attempt is not nested: beside it, after it, in a fallback, after a panic
#[test]
fn a_mark_ends_with_its_attempt() {
    listen();
    let _waits = VirtualWaits::start();
    for (name, outer, _) in FACES {
        let calls = Cell::new(0);
        let (_, _, single) = FACES[2];
        assert_eq!(outer(&|| Ok(1)), Ok(1));
        assert_eq!(single(&|| busy(&calls)), Err(E::Busy));
        assert_eq!(calls.replace(0), 3, "after {name}");
        let end = catch_unwind(AssertUnwindSafe(|| outer(&|| resume_unwind(Box::new("the body panicked")))));
        assert!(end.is_err());
        assert_eq!(single(&|| busy(&calls)), Err(E::Busy));
        assert_eq!(calls.get(), 3, "after a panic in {name}");
    }
    #[retry(name = "second route", nested = outer_only)]
    fn second(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls)
    }
    #[retry(name = "with a fallback", max_retries = 0, fallback = second(calls))]
    fn falls_back(calls: &Cell<u32>) -> Result<u32, E> {
        Err(E::Busy)
    }
    let calls = Cell::new(0);
    assert_eq!(falls_back(&calls), Err(E::Busy));
    assert_eq!(calls.get(), 3, "a fallback runs once");
}

// 10.1: an async attempt is marked in each poll and at no other time
#[test]
fn an_attempt_that_waits_leaves_its_thread_alone() {
    #[retry(name = "waits", nested = detect, sleep = never)]
    async fn waits(gate: &Gate) -> Result<u32, E> {
        gate.pass().await;
        single(&Cell::new(0))
    }
    #[retry(name = "waits, limited", nested = detect, attempt_timeout = "1m", sleep = never)]
    async fn limited(gate: &Gate) -> Result<u32, E> {
        gate.pass().await;
        single(&Cell::new(0))
    }
    #[retry(name = "beside", nested = outer_only)]
    fn single(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls).map_err(|_| if calls.get() == 1 { E::Busy } else { E::Refused })
    }
    /// Lets nobody pass before it is opened.
    #[derive(Default)]
    struct Gate(Cell<bool>);
    impl Gate {
        async fn pass(&self) {
            std::future::poll_fn(|_| if self.0.get() { Poll::Ready(()) } else { Poll::Pending }).await;
        }
    }
    let _waits = VirtualWaits::start();
    let mut cx = Context::from_waker(Waker::noop());
    for by_hand in [false, true] {
        let gate = Gate::default();
        let mut first: Pin<Box<dyn Future<Output = Result<u32, E>>>> =
            if by_hand { Box::pin(limited(&gate)) } else { Box::pin(waits(&gate)) };
        let mut second = pin!(waits(&gate));
        assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
        let calls = Cell::new(0);
        assert_eq!(single(&calls), Err(E::Refused), "two attempts: nothing is around this one");
        drop(first);
        assert_eq!(single(&Cell::new(0)), Err(E::Refused), "nor after one of them was dropped");
        gate.0.set(true);
        // it goes on to its wait: inside of it there was a single attempt
        let end = second.as_mut().poll(&mut cx);
        assert!(end.is_pending(), "{end:?}");
    }
}

// 10.1, 6.2
#[test]
fn the_report_says_why_there_was_a_single_attempt() {
    #[retry(nested = outer_only)]
    fn inner() -> Result<u32, GaveUp<E>> {
        Err(E::Busy)
    }
    #[retry(max_retries = 1)]
    fn outer() -> Result<GaveUp<E>, E> {
        Ok(inner().unwrap_err())
    }
    let gave_up = outer().unwrap();
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::Exhausted, 1));
    let text = gave_up.to_string();
    assert!(
        text.ends_with("exhausted: one attempt inside another call's, nested = outer_only; last error: busy"),
        "{text}"
    );
}

// 10.1: what makes one attempt multiplies nothing
#[test]
fn a_single_attempt_inside_is_not_told_of() {
    #[retry(name = "no retries", max_retries = 0)]
    fn inner() -> Result<u32, E> {
        Err(E::Busy)
    }
    #[retry(name = "around one", max_retries = 1)]
    fn outer() -> Result<u32, E> {
        inner()
    }
    listen();
    let _waits = VirtualWaits::start();
    assert_eq!(outer(), Err(E::Busy));
    assert_eq!(heard("nested_retry", "no retries"), [""; 0]);
}

// 10.1: three layers, each of them told of, with its depth
#[test]
fn the_depth_is_counted() {
    #[retry(name = "third", max_retries = 1)]
    fn third() -> Result<u32, E> {
        Ok(3)
    }
    #[retry(name = "second", max_retries = 1)]
    fn second() -> Result<u32, E> {
        third()
    }
    #[retry(name = "first", max_retries = 1)]
    fn first() -> Result<u32, E> {
        second()
    }
    listen();
    assert_eq!(first(), Ok(3));
    let said = |name| heard("nested_retry", name).concat();
    assert!(said("second").contains("inside an attempt of `first` (depth 1)"), "{}", said("second"));
    assert!(said("third").contains("inside an attempt of `second` (depth 2)"), "{}", said("third"));
    assert_eq!(said("first"), "");
}

// 10.1, 1.1: events carry the depth, and a single attempt is all there is
#[test]
fn events_carry_the_depth() {
    #[retry(observer = observer, nested = outer_only)]
    fn inner(observer: &dyn Observer) -> Result<u32, E> {
        Err(E::Busy)
    }
    #[retry(max_retries = 1, observer = observer)]
    fn outer(observer: &dyn Observer) -> Result<u32, E> {
        inner(observer)
    }
    let _waits = VirtualWaits::start();
    let seen = Mutex::new(Vec::new());
    let observer = from_fn(|event: &Event<'_>| {
        seen.lock().unwrap().push((event.name(), event.depth, event.max_attempts));
    });
    assert_eq!(outer(&observer), Err(E::Busy));
    let inside = [("attempt_started", 1, Some(1)), ("attempt_failed", 1, Some(1)), ("gave_up", 1, Some(1))];
    let outside = |name| (name, 0, Some(2));
    let mut wanted = vec![outside("attempt_started")];
    wanted.extend(inside);
    wanted.extend(["attempt_failed", "retry_scheduled", "attempt_started"].map(outside));
    wanted.extend(inside);
    wanted.extend(["attempt_failed", "gave_up"].map(outside));
    assert_eq!(*seen.lock().unwrap(), wanted);
}

// 10.1: with `test-util`, which these tests have, async functions are told of as well
#[test]
fn in_tests_nobody_has_to_ask() {
    #[retry(name = "plain inside")]
    async fn inner(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls)
    }
    #[retry(name = "plain around")]
    async fn outer(calls: &Cell<u32>) -> Result<u32, E> {
        inner(calls).await
    }
    listen();
    let calls = Cell::new(0);
    assert_eq!(paused(outer(&calls)), Err(E::Busy));
    assert_eq!(calls.get(), 9);
    assert_eq!(heard("nested_retry", "plain inside").len(), 1);
    assert_eq!(heard("nested_retry", "plain around").len(), 0);
    let retry = || Retry::new(QUICK);
    let end = paused(
        retry().name("builder around").run(async || retry().name("builder inside").run(async || busy(&calls)).await),
    );
    assert_eq!(end, Err(E::Busy));
    assert_eq!(heard("nested_retry", "builder inside").len(), 1);
}

/// Blocks where it is called.
fn blocks(name: &'static str) {
    let _waits = VirtualWaits::start();
    assert_eq!(Retry::new(QUICK).name(name).run_blocking(|| busy(&Cell::new(0))), Err(E::Busy));
}

// 10.2
#[test]
fn a_blocking_wait_is_told_of_where_tasks_run_and_nowhere_else() {
    #[retry(name = "stalls")]
    fn stalls() -> Result<u32, E> {
        Err(E::Busy)
    }
    listen();
    let threads = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let runtime = threads();
    blocks("no runtime");
    {
        let _entered = runtime.enter();
        blocks("a handle alone");
    }
    runtime.block_on(async {
        tokio::spawn(async {
            for _ in 0..3 {
                let _waits = VirtualWaits::start();
                assert_eq!(stalls(), Err(E::Busy));
                let end = retrying!(name = "retrying! stalls"; -> Result<u32, E> { Err(E::Busy) });
                assert_eq!(end, Err(E::Busy));
                blocks("a worker");
            }
            tokio::task::spawn_blocking(|| blocks("a thread for blocking work")).await.unwrap();
            tokio::task::block_in_place(|| blocks("a worker that is replaced"));
            tokio::spawn(async { blocks_at_once() }).await.unwrap();
        })
        .await
        .unwrap();
        std::thread::spawn(|| blocks("a thread of one's own")).join().unwrap();
        blocks("the main task");
    });
    paused(async { blocks("the only thread") });
    for (name, times) in [
        ("stalls", 1),
        ("retrying! stalls", 1),
        ("a worker", 1),
        ("the main task", 1),
        ("the only thread", 1),
        ("no runtime", 0),
        ("a handle alone", 0),
        ("a thread for blocking work", 0),
        ("a worker that is replaced", 0),
        ("a thread of one's own", 0),
        ("no wait", 0),
    ] {
        let said = heard("worker_stalled", name);
        assert_eq!(said.len(), times, "{name}: {said:?}");
        assert!(said.iter().all(|said| said.contains("`tokio::task::spawn_blocking`")), "{said:?}");
    }
}

/// A wait of no time stalls nobody.
fn blocks_at_once() {
    let policy = Policy::new().base_delay(Duration::ZERO);
    assert_eq!(Retry::new(policy).name("no wait").run_blocking(|| busy(&Cell::new(0))), Err(E::Busy));
}

// 10.2: looking takes nothing from the task that is looked at
#[test]
fn a_task_keeps_its_steps() {
    use tokio::task::coop::poll_proceed;
    fn steps() -> u32 {
        let mut cx = Context::from_waker(Waker::noop());
        let mut steps = 0;
        while let Poll::Ready(step) = poll_proceed(&mut cx) {
            step.made_progress();
            steps += 1;
        }
        steps
    }
    listen();
    let whole = paused(async { steps() });
    let after = paused(async {
        blocks("looked at");
        steps()
    });
    assert!(whole > 1);
    assert_eq!(whole, after);
    assert_eq!(heard("worker_stalled", "looked at").len(), 1);
}

// 12.4
#[test]
fn calls_without_a_name_are_told_of_at_each_place() {
    listen();
    let calls = Cell::new(0);
    let once = || Retry::new(Policy::new().max_retries(1).base_delay(Duration::ZERO));
    let before = heard("nested_retry", "retry").len();
    for _ in 0..2 {
        // both say of what is inside that it is
        let _busy = once().nested(Nested::Detect).run_blocking(|| {
            let _first = Retry::new(Policy::new().max_retries(1)).nested(Nested::Detect).run_blocking(|| busy(&calls));
            Retry::new(Policy::new().max_retries(1)).nested(Nested::Detect).run_blocking(|| busy(&calls))
        });
    }
    let heard = heard("nested_retry", "retry").split_off(before);
    let places: Vec<_> = heard.iter().filter(|said| said.contains("(set up at tests/nested.rs:")).collect();
    assert!(places.len() == 2 && places[0] != places[1], "{heard:#?}");
}

/// What a call of three attempts makes, inside or not.
fn attempts_of(call: impl FnOnce(&Cell<u32>) -> Result<u32, E>) -> u32 {
    let calls = Cell::new(0);
    assert_eq!(call(&calls), Err(E::Busy));
    calls.get()
}

// 10.1: a task is not inside of the blocking attempt that happens to drive its runtime; what `block_on` runs itself is
#[test]
fn tasks_that_a_blocking_attempt_drives_are_not_inside_of_it() {
    #[retry(name = "spawned", nested = outer_only, sleep = at_once)]
    async fn spawned(calls: &AtomicU32) -> Result<u32, E> {
        calls.fetch_add(1, SeqCst);
        Err(E::Busy)
    }
    #[retry(name = "drives")]
    fn drives(runtime: &tokio::runtime::Runtime, calls: &Arc<AtomicU32>) -> Result<u32, E> {
        let (in_task, in_block_on) = (Arc::clone(calls), AtomicU32::new(0));
        runtime.block_on(async {
            let task = tokio::spawn(async move {
                let _spawned = spawned(&in_task).await;
                // inside of a task the marks of its own hold
                let calls = AtomicU32::new(0);
                let around = Retry::new(QUICK.max_retries(1)).name("in the task").nested(Nested::Detect);
                let _failed = around.run(async || spawned(&calls).await).await;
                calls.into_inner()
            });
            let _inside = spawned(&in_block_on).await;
            Ok(10 * in_block_on.into_inner() + task.await.unwrap())
        })
    }
    listen();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    assert_eq!(drives(&runtime, &calls), Ok(12), "one attempt in `block_on`, one in each of two in the task");
    assert_eq!(calls.load(SeqCst), 3, "the task retries as ever");
    // and in a task that blocks, what it calls is inside
    let inside = runtime.block_on(async {
        let blocking = async {
            Retry::new(QUICK.max_retries(1)).run_blocking(|| {
                let calls = Cell::new(0);
                let _failed = Retry::new(QUICK).nested(Nested::OuterOnly).run_blocking(|| busy(&calls));
                Ok::<_, E>(calls.get())
            })
        };
        tokio::spawn(blocking).await.unwrap()
    });
    assert_eq!(inside, Ok(1));
}

// 10.1: an outer call that makes one attempt is no loop: nothing multiplies, and nobody else retries in its place
#[test]
fn a_call_of_one_attempt_is_nothing_to_be_inside_of() {
    #[retry(max_retries = 0, name = "once")]
    fn once(inner: Body<'_>) -> Result<u32, E> {
        inner()
    }
    #[retry(max_retries = retries, name = "computed once")]
    fn computed(retries: u32, inner: Body<'_>) -> Result<u32, E> {
        inner()
    }
    #[retry(max_retries = 0, name = "once, async", nested = detect, sleep = at_once)]
    async fn once_async(inner: Body<'_>) -> Result<u32, E> {
        inner()
    }
    #[retry(max_retries = 0, class(busy, max_retries = 1), name = "a class")]
    fn a_class(inner: Body<'_>) -> Result<u32, E> {
        inner()
    }
    #[retry(policy = policy, name = "a policy")]
    fn a_policy(policy: &Policy, inner: Body<'_>) -> Result<u32, E> {
        inner()
    }
    let one = || Policy::new().max_retries(0);
    let outer_only = |body: Body<'_>| Retry::new(QUICK).nested(Nested::OuterOnly).run_blocking(body);
    let quiet = |name: &'static str, body: Body<'_>| Retry::new(QUICK).name(name).run_blocking(body);
    listen();
    let _waits = VirtualWaits::start();
    assert_eq!(attempts_of(|calls| once(&|| outer_only(&|| busy(calls)))), 3);
    assert_eq!(attempts_of(|calls| once(&|| quiet("in once", &|| busy(calls)))), 3);
    assert_eq!(attempts_of(|calls| computed(0, &|| outer_only(&|| busy(calls)))), 3);
    assert_eq!(attempts_of(|calls| apart(once_async(&|| outer_only(&|| busy(calls))))), 3);
    assert_eq!(attempts_of(|calls| Retry::new(one()).run_blocking(|| outer_only(&|| busy(calls)))), 3);
    let by_macro = |calls: &Cell<u32>| retrying!(max_retries = 0; -> Result<u32, E> { outer_only(&|| busy(calls)) });
    assert_eq!(attempts_of(by_macro), 3);
    assert_eq!(heard("nested_retry", "in once").len(), 0);
    // a loop around it counts all the same
    assert_eq!(attempts_of(|calls| quiet("around once", &|| once(&|| outer_only(&|| busy(calls))))), 3);
    // where another number may hold, it is one
    assert_eq!(attempts_of(|calls| computed(1, &|| outer_only(&|| busy(calls)))), 2);
    assert_eq!(attempts_of(|calls| a_class(&|| outer_only(&|| busy(calls)))), 2);
    assert_eq!(attempts_of(|calls| a_policy(&QUICK.max_retries(1), &|| outer_only(&|| busy(calls)))), 2);
    let own = ClassLimits::new().max_retries(1);
    let of_class = Retry::new(one()).class("busy", own);
    assert_eq!(attempts_of(|calls| of_class.run_blocking(|| outer_only(&|| busy(calls)))), 2);
}
