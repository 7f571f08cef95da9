//! The aids for testing code that retries: waits that take no time, scripts, plans, chaos, planted stores.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking
#![allow(clippy::items_after_statements)] // a function stands where it is used

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use retry_runtime::dead_letter::{
    Actor, BoxFuture, ClaimRequest, Claimed, DeadLetter, DeadLetterSink, DeadLetterStore, Filter, MemoryStore, Ticket,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::testing::{Chaos, Faults, FixedRandom, Planted, VirtualWaits, assert_plan, no_waits, scripted};
use retry_runtime::{AttemptLedger, Elapsed, Jitter, Policy, Retry, StopReason, Verdict, retry};
use tokio::task::yield_now;

#[derive(Debug, PartialEq)]
struct Busy;

impl From<Elapsed> for Busy {
    fn from(_: Elapsed) -> Self {
        Self
    }
}

fn retryable(_: &Busy) -> Verdict {
    Verdict::retryable("busy")
}

const SECOND: Duration = Duration::from_secs(1);
const TWICE: Policy = Policy::new().max_retries(2);

fn fails() -> Result<(), Busy> {
    Retry::new(TWICE).classify(retryable).run_blocking(|| Err(Busy))
}

async fn fails_async() -> Result<(), Busy> {
    Retry::new(TWICE).classify(retryable).run(|| async { Err(Busy) }).await
}

/// Fails without ever waiting, so that a test may do it outside of any guard.
async fn fails_at_once() {
    let none = Policy::new().base_delay(Duration::ZERO);
    let _failed = Retry::new(none).classify(retryable).run(|| async { Err::<(), _>(Busy) }).await;
}

fn message_of(fails: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(fails)).unwrap_err();
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap()
}

// 13.1: blocking and async code, without tokio's paused clock
#[tokio::test]
async fn waits_are_recorded_and_take_no_time() {
    let waits = no_waits();
    assert_eq!(fails(), Err(Busy));
    assert_eq!(fails_async().await, Err(Busy));
    assert_eq!(waits.recorded(), [SECOND, 2 * SECOND, SECOND, 2 * SECOND]);
}

// 13.1: with it the guard has nothing to do, and time still passes
#[tokio::test(start_paused = true)]
async fn a_paused_clock_does_as_well() {
    let begun = tokio::time::Instant::now();
    assert_eq!(fails_async().await, Err(Busy));
    assert_eq!(begun.elapsed(), 3 * SECOND);
    let waits = no_waits();
    assert_eq!(fails_async().await, Err(Busy));
    assert_eq!((begun.elapsed(), waits.recorded().len()), (3 * SECOND, 2));
}

// A timer of one's own is not asked either, and what retries still lets others run.
#[tokio::test]
async fn no_timer_is_asked() {
    let _quick = no_waits();
    let timer = |_| async { panic!("the timer was asked") };
    let others = Cell::new(0);
    let retry = Retry::new(TWICE).classify(retryable).run_with(timer, || async { Err::<(), _>(Busy) });
    let count = async {
        for _ in 0..2 {
            others.set(others.get() + 1);
            yield_now().await;
        }
    };
    let (failed, ()) = tokio::join!(retry, count);
    assert_eq!((failed, others.get()), (Err(Busy), 2));
}

// 13.1: never process-wide: another thread records nothing here
#[test]
fn other_threads_wait_as_ever() {
    let waits = no_waits();
    let at_once =
        || Retry::new(TWICE.base_delay(Duration::ZERO)).classify(retryable).run_blocking(|| Err::<(), _>(Busy));
    std::thread::spawn(at_once).join().unwrap().unwrap_err();
    assert_eq!(waits.recorded(), []);
    at_once().unwrap_err();
    assert_eq!(waits.recorded(), [Duration::ZERO; 2]);
    drop(waits);
    at_once().unwrap_err();
    assert_eq!(no_waits().recorded(), []);
}

// 13.1: the guard of a task goes with it from thread to thread, and is no other task's
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_belongs_to_its_task() {
    let guarded = tokio::spawn(async {
        let waits = no_waits();
        for _ in 0..100 {
            yield_now().await;
            fails_async().await.unwrap_err();
        }
        waits.recorded()
    });
    let other = tokio::spawn(async {
        for _ in 0..100 {
            yield_now().await;
            fails_at_once().await;
        }
    });
    other.await.unwrap();
    let recorded = guarded.await.unwrap();
    assert_eq!(recorded.len(), 200);
    assert!(!recorded.contains(&Duration::ZERO), "the other task's waits are not here");
}

// On a runtime of one thread the guard of the test holds for the tasks that it spawns.
#[tokio::test]
async fn a_guard_of_the_thread_holds_for_its_tasks() {
    let waits = no_waits();
    tokio::spawn(fails_async()).await.unwrap().unwrap_err();
    assert_eq!(waits.recorded().len(), 2);
}

// The runtime's clock moves by what is not waited: a deadline ends the call as it would.
#[test]
fn a_deadline_sees_virtual_waits() {
    let waits = no_waits();
    let call = Retry::new(Policy::new().forever()).deadline(Duration::from_secs(10)).classify(retryable);
    let gave_up = call.run_blocking_reporting(|| Err::<(), _>(Busy)).unwrap_err();
    assert_eq!(gave_up.reason(), StopReason::Deadline);
    assert_eq!((waits.recorded().len(), gave_up.elapsed().as_secs()), (3, 7), "1, 2 and 4 s; 8 more would be too many");
}

// An inner guard records for itself, and its time has passed for the outer one.
#[test]
fn guards_nest() {
    let outer = VirtualWaits::start();
    let call = Retry::new(TWICE).classify(retryable).deadline(Duration::from_secs(5));
    let mut seen = Vec::new();
    let gave_up = call
        .run_blocking_reporting(|| {
            let inner = no_waits();
            let _failed = fails();
            seen.push(inner.recorded().len());
            Err::<(), _>(Busy)
        })
        .unwrap_err();
    // 3 s inside, 1 s between, 3 s inside: the next wait of 2 s would pass the deadline
    assert_eq!((gave_up.reason(), seen.as_slice()), (StopReason::Deadline, [2, 2].as_slice()));
    assert_eq!(outer.recorded(), [SECOND]);
}

// 13.1
#[tokio::test]
async fn a_script_is_played_in_order() {
    let _quick = no_waits();
    let operation = scripted([Err(Busy), Err(Busy), Ok(3)]);
    let end = Retry::new(TWICE).classify(retryable).run(|| operation.call_async()).await;
    assert_eq!((end, operation.calls()), (Ok(3), 3));
    operation.assert_played();
    let said = message_of(|| assert!(operation.call().is_ok()));
    assert_eq!(said, "call 4 of an operation whose script has 3 outcomes");

    // a body reads it as it reads anything
    #[retry(max_retries = 1, classify = retryable)]
    fn fetch(operation: &impl Fn() -> Result<u32, Busy>) -> Result<u32, Busy> {
        operation()
    }
    let operation = scripted([Err(Busy), Ok(1), Ok(2)]);
    assert_eq!(fetch(&|| operation.call()), Ok(1));
    assert_eq!(message_of(|| operation.assert_played()), "the script goes on after 2 calls");
    // a future that is never polled plays nothing
    let operation = scripted([Ok::<_, Busy>(1)]);
    drop(operation.call_async());
    assert_eq!(operation.calls(), 0);
}

// 13.1
#[test]
fn a_plan_is_compared_in_words() {
    let policy = Policy::new().max_retries(2).jitter(Jitter::Full);
    assert_plan!(policy, "3 attempts; waits 0s..1s, 0s..2s; at most 3s in total");
    assert_plan!(&policy, ["0s..1s", "0s..2s"]);
    assert_plan!(Arc::new(policy), ["0s..1s", ..]);
    assert_plan!(Policy::new().max_retries(0), []);
    assert_plan!(Policy::new().forever().jitter(Jitter::None), ["1s", "2s", "4s", ..]);
    let said = message_of(|| assert_plan!(policy, ["0s..1s"]));
    assert!(said.contains("found:    3 attempts") && said.contains("expected: 0s..1s"), "{said}");
    let said = message_of(|| assert_plan!(policy, ["0s..1s", "0s..2s", ..]));
    assert!(said.ends_with("expected: 0s..1s, 0s..2s, and more"), "{said}");
    let said = message_of(|| assert_plan!(policy, "2 attempts"));
    assert!(said.contains("found:    3 attempts; waits") && said.contains("expected: 2 attempts"), "{said}");
    let said = message_of(|| assert_plan!(policy, "3 attempts; waits 0s..1s"));
    assert!(said.contains("the policy's plan is another one"), "the beginning is not enough: {said}");
    let said = message_of(|| assert_plan!(policy, ["1s", "2s"]));
    assert!(said.contains("the policy waits otherwise"), "{said}");
}

// 13.1: the same waits in every run
#[test]
fn randomness_can_be_fixed() {
    let waits = |seed| {
        let (_random, waits) = (FixedRandom::seed(seed), no_waits());
        let policy = TWICE.jitter(Jitter::Full);
        let _failed = Retry::new(policy).classify(retryable).run_blocking(|| Err::<(), _>(Busy));
        waits.recorded()
    };
    assert_eq!(waits(1), waits(1));
    assert_ne!(waits(1), waits(2));
}

/// What became of a call under chaos.
fn ends(chaos: &Chaos<Busy>, calls: usize) -> Vec<&'static str> {
    let one = || catch_unwind(AssertUnwindSafe(|| chaos.run_blocking(|| Ok(()))));
    let word = |end: std::thread::Result<Result<(), Busy>>| match end {
        Ok(Ok(())) => "ok",
        Ok(Err(Busy)) => "error",
        Err(_) => "panic",
    };
    (0..calls).map(|_| word(one())).collect()
}

// 13.2: the rates that were asked for, the same in every run, each by itself
#[test]
fn chaos_strikes_at_its_rates_and_repeats() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let _quick = no_waits();
    let all = |seed| {
        Chaos::seeded(seed)
            .errors(0.2, || Busy)
            .latency(0.3, SECOND..=2 * SECOND)
            .hangs(0.05)
            .panics(0.1)
            .lost_answers(0.01, || Busy)
    };
    let chaos = all(7);
    let first = ends(&chaos, 10_000);
    assert_eq!(first, ends(&all(7), 10_000), "the same seed");
    assert_ne!(first, ends(&all(8), 10_000), "another seed");
    let tally = chaos.tally();
    // within four standard deviations of what is expected of those that the kinds before let through
    for (name, found, expected) in [
        ("panics", tally.panics, 1000),
        ("hangs", tally.hangs, 450),
        ("delayed", tally.delayed, 2700),
        ("errors", tally.errors, 1800),
        ("lost answers", tally.lost_answers, 72),
    ] {
        let off = found.abs_diff(expected);
        assert!(off * off <= 16 * expected, "{name}: {found} instead of {expected}: {tally}");
    }
    assert_eq!(tally.calls, 10_000);
    // one rate changes nothing of another: who panics is the same without the others
    let panics = |ends: &[&str]| ends.iter().map(|end| *end == "panic").collect::<Vec<_>>();
    assert_eq!(panics(&ends(&Chaos::seeded(7).panics(0.1), 10_000)), panics(&first));
    let errors = |chaos: Chaos<Busy>| ends(&chaos.errors(0.2, || Busy), 10_000);
    let alone = errors(Chaos::seeded(7));
    assert_eq!(alone, errors(Chaos::seeded(7).hangs(0.5).latency(0.5, SECOND..=2 * SECOND)));
    // the ends of the scale, and beyond
    assert!(ends(&Chaos::seeded(1).errors(1.0, || Busy), 1000).iter().all(|end| *end == "error"));
    assert!(ends(&Chaos::seeded(1).errors(2.0, || Busy), 1000).iter().all(|end| *end == "error"));
    for none in [0.0, -1.0, f64::NAN] {
        assert!(ends(&Chaos::seeded(1).errors(none, || Busy).panics(none), 1000).iter().all(|end| *end == "ok"));
    }
    std::panic::set_hook(quiet);
}

// 13.2: an error keeps the operation from running; a lost answer does not
#[test]
fn a_lost_answer_has_done_the_work() {
    let done = Cell::new(0);
    let work = || {
        done.set(done.get() + 1);
        Ok(1)
    };
    assert_eq!(Chaos::seeded(1).errors(1.0, || Busy).run_blocking(work), Err(Busy));
    assert_eq!(done.get(), 0);
    let chaos = Chaos::seeded(1).lost_answers(1.0, || Busy);
    assert_eq!((chaos.run_blocking(work), done.get()), (Err(Busy), 1));
    assert_eq!(chaos.tally().to_string(), "1 calls: 0 errors, 1 lost answers, 0 delayed, 0 hangs, 0 panics");
}

// 13.2: what hangs is ended by a time limit, and what takes long takes long
#[tokio::test(start_paused = true)]
async fn hangs_end_by_a_time_limit_and_latency_takes_its_time() {
    #[retry(max_retries = 2, base_delay = "1s", backoff = fixed, attempt_timeout = "10s", classify = retryable)]
    async fn limited(chaos: &Chaos<Busy>) -> Result<(), Busy> {
        chaos.run(|| async { Ok(()) }).await
    }
    let begun = tokio::time::Instant::now();
    let chaos = Chaos::seeded(1).hangs(1.0);
    assert_eq!(limited(&chaos).await, Err(Busy));
    assert_eq!((begun.elapsed(), chaos.tally().hangs), (32 * SECOND, 3));

    let begun = tokio::time::Instant::now();
    Chaos::<Busy>::seeded(1).latency(1.0, 5 * SECOND..=5 * SECOND).run(|| async { Ok(()) }).await.unwrap();
    assert_eq!(begun.elapsed(), 5 * SECOND);
    // on a virtual clock it takes none, and a deadline sees it
    let _quick = no_waits();
    let chaos = Chaos::seeded(1).latency(1.0, 5 * SECOND..=5 * SECOND).errors(1.0, || Busy);
    let call = Retry::new(Policy::new().forever()).deadline(Duration::from_secs(12)).classify(retryable);
    let gave_up = call.run_reporting(|| chaos.run(|| async { Ok(()) })).await.unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::Deadline, 2));
    assert_eq!(begun.elapsed(), 5 * SECOND);
}

// 13.2
#[tokio::test]
#[should_panic(expected = "chaos of seed 9: call 1 panics on purpose")]
async fn a_panic_names_its_seed() {
    let _never = Chaos::<Busy>::seeded(9).panics(1.0).run(|| async { Ok(()) }).await;
}

/// Claims fail; parkings are counted on their way.
struct Counted {
    inner: MemoryStore,
    parked: AtomicU32,
}

impl Faults for Counted {
    type Inner = MemoryStore;
    fn inner(&self) -> &MemoryStore {
        &self.inner
    }
    fn submit(&self, letter: DeadLetter) -> Ticket {
        self.parked.fetch_add(1, SeqCst);
        self.inner.submit(letter)
    }
    fn claim(&self, _: ClaimRequest, _: Actor) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        Box::pin(async { Err(StoreError::new(StoreErrorKind::Busy, "on purpose")) })
    }
}

#[tokio::test]
async fn a_planted_store_is_the_inner_one_but_for_its_faults() {
    let store = Planted(Counted { inner: MemoryStore::new(), parked: AtomicU32::new(0) });
    #[retry(max_retries = 0, classify = retryable, name = "fetch", dead_letter(sink = store, job_id = 7, payload = "x"))]
    async fn fetch(store: &Planted<Counted>) -> Result<(), Busy> {
        Err(Busy)
    }
    fetch(&store).await.unwrap_err();
    assert_eq!(store.parked.load(SeqCst), 1);
    assert_eq!(store.count(Filter::all()).await.unwrap(), 1, "the verb of the inner store");
    let claimed = store.claim(ClaimRequest::new(["fetch"], "test"), Actor::new("test", "")).await;
    assert_eq!(claimed.unwrap_err().kind(), StoreErrorKind::Busy);
    fn is_a_whole_store(_: &(impl DeadLetterStore + AttemptLedger)) {}
    is_a_whole_store(&store);
}
