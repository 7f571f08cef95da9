//! A job that panics is parked exactly once, and its panic goes on as it was (SEMANTICS 11.3, 11.5).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::any::Any;
use std::cell::Cell;
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink, Parking, Payload, Ticket};
use retry_runtime::reply::{Answer, Reply};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{Budget, CircuitBreaker, Classify, Disposition, Elapsed, Refused, StopReason, retry, retrying};
use serde::{Serialize, Serializer};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable, class = "busy")]
    Busy,
    #[error(transparent)]
    #[classify(transparent)]
    Refused(#[from] Refused),
    #[error("slow")]
    #[classify(retryable)]
    Slow(#[from] Elapsed),
}

/// A sink that keeps what it gets.
#[derive(Default)]
struct Kept(Mutex<Vec<DeadLetter>>);

impl DeadLetterSink for Kept {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        let letter_id = letter.park_id.to_string();
        self.0.lock().unwrap().push(letter);
        Reply::ready(Parking::Parked { letter_id })
    }
}

impl Kept {
    fn only(&self) -> DeadLetter {
        let letters = self.0.lock().unwrap();
        assert_eq!(letters.len(), 1, "{letters:?}");
        letters[0].clone()
    }
}

/// What a panic carries that nobody knows.
#[derive(Debug, PartialEq)]
struct Odd(u32);

/// Fails once, then panics.
struct Job {
    dlq: Kept,
    runs: AtomicU32,
    panic: fn(),
    budget: Budget,
    breaker: CircuitBreaker,
}

impl Job {
    fn new(panic: fn()) -> Self {
        let (budget, breaker) = (Budget::new(), CircuitBreaker::new());
        Self { dlq: Kept::default(), runs: AtomicU32::new(0), panic, budget, breaker }
    }

    fn run(&self) -> Result<u32, E> {
        if self.runs.fetch_add(1, SeqCst) == 0 {
            return Err(E::Busy);
        }
        (self.panic)();
        Ok(7)
    }
}

macro_rules! faces {
    ($job:ident; $($name:ident($($options:tt)*);)*) => {
        $(
            #[retry(name = "job", dead_letter(sink = &$job.dlq, job_id = 7, payload = [1, 2]), $($options)*)]
            async fn $name($job: &Job) -> Result<u32, E> {
                tokio::task::yield_now().await;
                $job.run()
            }
        )*
        const FACES: &[(&str, fn(&Job) -> Result<u32, E>)] = &[
            $((stringify!($name), |job| paused($name(job))),)*
            ("blocking", blocking),
            ("blocking, everything", blocking_everything),
            ("retrying", |job| paused(async { retrying!(name = "job", dead_letter(sink = &job.dlq, job_id = 7, payload = [1, 2]); async -> Result<u32, E> { job.run() }) })),
            ("retrying, blocking", |job| retrying!(name = "job", dead_letter(sink = &job.dlq, job_id = 7, payload = [1, 2]); -> Result<u32, E> { job.run() })),
        ];
    };
}

faces! {
    job;
    plain();
    in_context(context = seen);
    second(fallback = Ok(9));
    limited(attempt_timeout = "5s", deadline = "1h");
    cancellable(cancel = pending::<()>());
    sharing(budget = &job.budget, breaker = &job.breaker);
}

#[retry(name = "job", dead_letter(sink = &job.dlq, job_id = 7, payload = [1, 2]))]
fn blocking(job: &Job) -> Result<u32, E> {
    job.run()
}

#[retry(name = "job", dead_letter(sink = &job.dlq, job_id = 7, payload = [1, 2]), fallback = Ok(9), context = seen, deadline = "1h", budget = &job.budget, breaker = &job.breaker)]
fn blocking_everything(job: &Job) -> Result<u32, E> {
    job.run()
}

fn paused<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(future)
}

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(work))
}

// 11.3, D20
#[test]
fn a_panic_in_the_body_is_parked_with_its_message_and_goes_on() {
    for (name, face) in FACES {
        for (panic, message) in [
            ((|| panic!("index {} is odd", std::hint::black_box(3))) as fn(), "index 3 is odd"),
            (|| panic!("plain"), "plain"),
            (|| panic_any(Odd(9)), "no message"),
        ] {
            let (job, _waits) = (Job::new(panic), VirtualWaits::start());
            let carried = caught(|| face(&job)).expect_err("the panic goes on");
            match message {
                "index 3 is odd" => assert_eq!(carried.downcast_ref::<String>().unwrap(), message, "{name}"),
                "plain" => assert_eq!(*carried.downcast_ref::<&str>().unwrap(), message, "{name}"),
                _ => assert_eq!(carried.downcast_ref::<Odd>(), Some(&Odd(9)), "{name}"),
            }
            let letter = job.dlq.only();
            assert_eq!(
                (letter.reason, letter.error_message.as_str(), letter.attempts),
                (StopReason::Panicked, message, 2)
            );
            // nobody judged it: the reason stands alone, whatever the attempt before it was
            assert_eq!((letter.error_class(), letter.disposition), ("panicked".into(), Disposition::Unknown), "{name}");
            assert_eq!(
                (letter.job_id.as_deref(), &letter.payload),
                (Some("7"), &Payload::Json("[1,2]".into())),
                "{name}"
            );
            let history: Vec<_> = letter.history.iter().map(|record| (record.attempt, record.class.as_ref())).collect();
            assert_eq!(history, [(1, "busy"), (2, "panicked")], "{name}");
        }
    }
}

// 11.3: its identity is made when the call starts
#[test]
fn a_parking_is_as_old_as_its_call() {
    let (job, _waits) = (Job::new(|| panic!("late")), VirtualWaits::start());
    assert!(caught(|| blocking(&job)).is_err());
    let letter = job.dlq.only();
    let id = letter.park_id.to_string().replace('-', "");
    let made = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::from_str_radix(&id[..12], 16).unwrap());
    let before = letter.failed_at.duration_since(made).unwrap();
    assert!(before >= Duration::from_millis(999), "a wait of a second lies between: {before:?}");
}

/// A sink that answers when it is told to.
#[derive(Default)]
struct Slow(Mutex<Vec<(DeadLetter, Answer<Parking>)>>);

impl DeadLetterSink for Slow {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        let (answer, ticket) = Reply::pair(|| Parking::Replaying);
        self.0.lock().unwrap().push((letter, answer));
        ticket
    }
}

// D5: a blocking call hears that its letter is durable before its panic goes on; a future waits for nobody
#[test]
fn a_blocking_call_waits_for_its_letter() {
    #[retry(dead_letter(sink = dlq))]
    fn blocking(dlq: &Slow) -> Result<u32, E> {
        panic!("on purpose")
    }
    #[retry(dead_letter(sink = dlq))]
    async fn asynchronous(dlq: &Slow) -> Result<u32, E> {
        panic!("on purpose")
    }
    let (dlq, answered) = (Slow::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let end = caught(|| blocking(&dlq));
            assert!(answered.load(SeqCst), "its panic went on before");
            end.is_err()
        });
        let answer = loop {
            if let Some((_, answer)) = dlq.0.lock().unwrap().pop() {
                break answer;
            }
            std::thread::yield_now();
        };
        answered.store(true, SeqCst);
        answer.send(Parking::Parked { letter_id: "L".into() });
        assert!(call.join().unwrap());
    });
    assert!(paused(AssertUnwindSafe(asynchronous(&dlq)).catch_unwind()).is_err());
    assert_eq!(dlq.0.lock().unwrap().len(), 1);
}

// 11.3: a panic anywhere else drops the future
#[test]
fn a_panic_outside_the_body_is_a_drop() {
    #[retry(dead_letter(sink = dlq), fallback = panic!("in the second route"))]
    fn in_fallback(dlq: &Kept) -> Result<u32, E> {
        Err(E::Busy)
    }
    #[retry(dead_letter(sink = dlq), fallback = panic!("in the second route"))]
    async fn in_async_fallback(dlq: &Kept) -> Result<u32, E> {
        Err(E::Busy)
    }
    #[retry(dead_letter(sink = dlq), sleep = broken)]
    async fn in_the_timer(dlq: &Kept) -> Result<u32, E> {
        Err(E::Busy)
    }
    fn broken(_: Duration) -> std::future::Ready<()> {
        panic!("the timer is broken")
    }
    #[retry(dead_letter(sink = dlq), retry_on(E::Busy if panics()))]
    async fn in_a_pattern(dlq: &Kept) -> Result<u32, E> {
        Err(E::Busy)
    }
    fn panics() -> bool {
        panic!("a guard")
    }
    type Call = fn(&Kept) -> Result<u32, E>;
    // in a pattern the attempt is not judged yet
    let calls: [(Call, u32, usize); 4] = [
        (
            |dlq| {
                let _waits = VirtualWaits::start();
                in_fallback(dlq)
            },
            4,
            3,
        ),
        (|dlq| paused(in_async_fallback(dlq)), 4, 3),
        (|dlq| paused(in_the_timer(dlq)), 1, 1),
        (|dlq| paused(in_a_pattern(dlq)), 1, 0),
    ];
    for (call, attempts, failed) in calls {
        let dlq = Kept::default();
        assert!(caught(|| call(&dlq)).is_err());
        let letter = dlq.only();
        assert_eq!((letter.reason, letter.attempts, letter.history.len()), (StopReason::Dropped, attempts, failed));
    }
}

/// Panics when it is serialised, with something that panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped")
    }
}

struct Hostile;

impl Serialize for Hostile {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic_any(Bomb)
    }
}

#[retry(name = "job", dead_letter(sink = dlq, payload = Hostile))]
async fn hostile(dlq: &Kept, panics: bool) -> Result<u32, E> {
    assert!(!panics, "in the body");
    pending().await
}

/// Polls it once, and drops it, as it unwinds from a panic of somebody else.
struct Holds<'a>(Pin<Box<dyn Future<Output = Result<u32, E>> + 'a>>);

impl Holds<'_> {
    fn polled(mut self) -> Self {
        let _polled = self.0.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self
    }
}

// 11.5, 11.3: nothing aborts, and it is parked once
#[test]
fn panics_within_panics_park_once() {
    let unserializable =
        |letter: &DeadLetter| matches!(&letter.payload, Payload::Unserializable(why) if why.contains("panicked"));
    let dlq = Kept::default();
    drop(Holds(Box::pin(hostile(&dlq, false))).polled());
    assert!(unserializable(&dlq.only()), "in an orderly drop");

    let dlq = Kept::default();
    let carried = caught(|| {
        let _held = Holds(Box::pin(hostile(&dlq, false))).polled();
        panic!("of somebody else")
    });
    assert_eq!(carried.unwrap_err().downcast_ref::<&str>(), Some(&"of somebody else"));
    assert!(unserializable(&dlq.only()), "while another panic unwinds");
    assert_eq!(dlq.only().reason, StopReason::Dropped);

    let dlq = Kept::default();
    let carried = caught(|| Holds(Box::pin(hostile(&dlq, true))).polled());
    assert_eq!(
        carried.err().and_then(|carried| carried.downcast::<&str>().ok()).map(|text| *text),
        Some("in the body")
    );
    assert!(unserializable(&dlq.only()) && dlq.only().reason == StopReason::Panicked, "in the body's own panic");
}

// 11.3: a sink that panics has lost the letter, once and loudly; the panic that is under way stays the one there is
#[test]
fn a_sink_that_panics_in_a_drop_guard_is_a_loss() {
    struct Broken;
    impl DeadLetterSink for Broken {
        fn submit(&self, _: DeadLetter) -> Ticket {
            panic!("a sink at its end")
        }
    }
    #[retry(name = "job", dead_letter(sink = Broken))]
    async fn job(panics: bool) -> Result<u32, E> {
        assert!(!panics, "in the body");
        pending().await
    }
    let before = retry_runtime::dead_letter::lost();
    drop(Holds(Box::pin(job(false))).polled());
    assert_eq!(retry_runtime::dead_letter::lost() - before, 1);
    let carried = caught(|| Holds(Box::pin(job(true))).polled());
    assert_eq!(
        carried.err().and_then(|carried| carried.downcast::<&str>().ok()).map(|text| *text),
        Some("in the body")
    );
    assert_eq!(retry_runtime::dead_letter::lost() - before, 2);
}

// the body's own locals are dropped before the letter is made: what they hold is free
#[test]
fn what_the_body_locks_is_free_when_the_payload_is_serialised() {
    struct Shared<'a>(&'a Mutex<u32>);
    impl Serialize for Shared<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u32(*self.0.try_lock().map_err(serde::ser::Error::custom)?)
        }
    }
    #[allow(clippy::await_holding_lock)] // on purpose
    #[retry(dead_letter(sink = dlq, payload = Shared(shared)))]
    async fn locks(dlq: &Kept, shared: &Mutex<u32>) -> Result<u32, E> {
        let _locked = shared.lock().unwrap();
        pending().await
    }
    let (dlq, shared, ran) = (Kept::default(), Mutex::new(3), Cell::new(false));
    drop(
        Holds(Box::pin(async {
            ran.set(true);
            locks(&dlq, &shared).await
        }))
        .polled(),
    );
    assert_eq!((dlq.only().payload, ran.get()), (Payload::Json("3".into()), true));
}
