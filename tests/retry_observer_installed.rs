//! The installed observer: it watches calls that say nothing of an observer, at no cost beside one relaxed load where there
//! is none. One test, since what is installed stays for the process.
#![allow(clippy::unwrap_used, clippy::panic)] // a helper of a test fails as a test does

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use retry_runtime::dead_letter::{DeadLetter, MemoryStore, Parking, Ticket};
use retry_runtime::observe::{Event, from_fn, install};
use retry_runtime::reply::{Answer, Reply};
use retry_runtime::testing::{VirtualWaits, clock_reads};
use retry_runtime::{Classify, DeadLetterSink, Policy, Retry, retry};

#[derive(Debug, PartialEq, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(name = "plain", max_retries = 1)]
async fn plain(outcome: &dyn Fn() -> Result<u32, Busy>) -> Result<u32, Busy> {
    outcome()
}

#[retry(name = "hangs")]
async fn hangs() -> Result<u32, Busy> {
    pending().await
}

#[retry(name = "blocking", max_retries = 1)]
fn blocking(outcome: &dyn Fn() -> Result<u32, Busy>) -> Result<u32, Busy> {
    outcome()
}

#[retry(name = "parks", max_retries = 0, dead_letter(sink = dlq, job_id = "a"))]
fn parks(dlq: &MemoryStore) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(name = "waits", dead_letter(sink = sink, job_id = "a"))]
async fn waits(sink: &Slow) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(name = "drops", dead_letter(sink = sink, job_id = "a"))]
async fn drops(sink: &Slow) -> Result<u32, Busy> {
    pending().await
}

/// Answers when the test does.
#[derive(Default)]
struct Slow(Mutex<Vec<Answer<Parking>>>);

impl DeadLetterSink for Slow {
    fn submit(&self, _: DeadLetter) -> Ticket {
        let (answer, ticket) = Reply::pair(|| Parking::Replaying);
        self.0.lock().unwrap().push(answer);
        ticket
    }
}

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn told() -> Vec<String> {
    std::mem::take(&mut TOLD.lock().unwrap())
}

fn watch(event: &Event<'_>) {
    let job_id = event.job_id.map(|id| format!(" {id} {}", event.class.unwrap_or("-"))).unwrap_or_default();
    TOLD.lock().unwrap().push(format!("{} {} {}{job_id}", event.operation, event.name(), event.attempt));
}

fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

// 12.1, 12.4
#[test]
fn it_watches_every_call_that_begins_after_it_came() {
    let _waits = VirtualWaits::start();
    let cost = || {
        let before = clock_reads();
        let allocated = measure(|| assert_eq!(poll(plain(&|| Ok(7))), Poll::Ready(Ok(7)))).count_total;
        (allocated, clock_reads() - before)
    };
    let size = size_of_val(&plain(&|| Ok(7)));
    assert_eq!(cost(), (0, 0));
    let mut begun_before = Box::pin(hangs());
    let _pending = begun_before.as_mut().poll(&mut Context::from_waker(Waker::noop()));

    assert!(install(from_fn(watch)));
    assert!(!install(from_fn(|_: &Event<'_>| panic!("a second one is not taken"))));
    drop(begun_before);
    assert_eq!(told(), [""; 0], "half a call would be misleading");

    assert_ne!(cost(), (0, 0), "the counts bite");
    assert_eq!(told(), ["plain attempt_started 1", "plain succeeded 1"]);
    assert_eq!(size_of_val(&plain(&|| Ok(7))), size);
    assert_eq!(blocking(&|| Err(Busy)), Err(Busy));
    let all = [
        "blocking attempt_started 1",
        "blocking attempt_failed 1",
        "blocking retry_scheduled 1",
        "blocking attempt_started 2",
        "blocking attempt_failed 2",
        "blocking gave_up 2",
    ];
    assert_eq!(told(), all);
    assert_eq!(Retry::new(Policy::new()).name("builder").run_blocking(|| Ok::<_, Busy>(7)), Ok(7));
    assert_eq!(told(), ["builder attempt_started 1", "builder succeeded 1"]);
    // beside an observer of the call's own
    let own = Mutex::new(0);
    let count = from_fn(|_: &Event<'_>| *own.lock().unwrap() += 1);
    assert_eq!(Retry::new(Policy::new()).observer(&count).run_blocking(|| Ok::<_, Busy>(7)), Ok(7));
    assert_eq!((told().len(), *own.lock().unwrap()), (2, 2));

    assert_eq!(parks(&MemoryStore::new()), Err(Busy));
    assert_eq!(told().last().unwrap(), "parks parked 1 a busy");

    // 11.3
    assert!(poll(hangs()).is_pending());
    assert_eq!(told(), ["hangs attempt_started 1", "hangs gave_up 1"]);
    assert!(catch_unwind(AssertUnwindSafe(|| blocking(&|| resume_unwind(Box::new("panic"))))).is_err());
    assert_eq!(told(), ["blocking attempt_started 1", "blocking attempt_failed 1", "blocking gave_up 1"]);
    // a letter nobody waits for: the sink answers when it has it
    let sink = Slow::default();
    assert!(poll(drops(&sink)).is_pending());
    assert_eq!(told(), ["drops attempt_started 1", "drops gave_up 1"]);
    for parking in [Parking::Parked { letter_id: "7".into() }, Parking::Replaying] {
        sink.0.lock().unwrap().pop().map(|answer| answer.send(parking)).unwrap();
        let _again = poll(drops(&sink));
    }
    let again = ["drops attempt_started 1", "drops gave_up 1"];
    assert_eq!(told(), [&["drops parked 1 a -"], &again[..], &again].concat(), "a replay writes its own result");
    assert!(poll(waits(&sink)).is_pending());
    let _until_it_waits = told();
    let answer = sink.0.lock().unwrap().pop();
    answer.map(|answer| answer.send(Parking::Parked { letter_id: "8".into() })).unwrap();
    assert_eq!(told(), ["waits parked 1 a busy"], "it knows the failure of the call that is gone");
    // calls side by side, and one within an attempt of another
    let (first, second) = (Box::pin(hangs()), Box::pin(hangs()));
    let mut both = [first, second];
    for call in &mut both {
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(blocking(&|| blocking(&|| Ok(7))), Ok(7));
    drop(both);
    let mut all = told();
    all.sort();
    let ended =
        ["blocking succeeded 1"; 2].into_iter().chain(["hangs attempt_started 1"; 2]).chain(["hangs gave_up 1"; 2]);
    let expected: Vec<&str> = ["blocking attempt_started 1"; 2].into_iter().chain(ended).collect();
    assert_eq!(all, expected);
    // places are used again, by threads of their own as well
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(poll(plain(&|| Ok(7))), Poll::Ready(Ok(7)));
                }
            });
        }
    });
    assert_eq!(told().len(), 1_600);
}
