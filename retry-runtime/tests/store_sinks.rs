//! Sinks made of a closure: the queue, the chain behind it, and closing.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::convert::Infallible;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime};

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    AsyncSink, BlockingSink, DeadLetter, DeadLetterSink, Parking, Payload, Spill, Ticket, lost,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::id::Id;
use retry_runtime::testing::conformance;

const PATIENCE: Duration = Duration::from_secs(30);

struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("retry-sinks-{}", Id::new(SystemTime::now())));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn spill(&self) -> Spill {
        Spill::in_dirs("queue", [self.0.clone()])
    }

    /// Job ids of the lines that wait, by a look at the files.
    fn spilled(&self) -> Vec<String> {
        let mut jobs = Vec::new();
        for path in self.spill().files().unwrap() {
            for line in fs::read_to_string(path).unwrap().lines() {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                if let Some(job) = value["letter"]["job_id"].as_str() {
                    jobs.push(job.to_owned());
                }
            }
        }
        jobs.sort();
        jobs
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.0);
    }
}

fn letter(job: &str) -> DeadLetter {
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now());
    letter.job_id = Some(job.into());
    letter.payload = Payload::Json("1".into());
    letter
}

fn outcome(ticket: Ticket) -> Parking {
    ticket.wait(PATIENCE).unwrap()
}

#[allow(clippy::unnecessary_wraps, reason = "what a sink's closure returns")]
fn id(letter: &DeadLetter) -> Result<String, Infallible> {
    Ok(letter.park_id.to_string())
}

fn job(letter: &DeadLetter) -> String {
    letter.job_id.clone().unwrap()
}

#[test]
fn a_blocking_closure_makes_a_sink() {
    let dir = Dir::new();
    conformance::sink(|| BlockingSink::with_spill(dir.spill(), id).unwrap()).assert_passed();
}

#[test]
fn an_asynchronous_closure_makes_a_sink() {
    let dir = Dir::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let spawn = || |task| drop(runtime.spawn(task));
    conformance::sink(|| AsyncSink::with_spill(dir.spill(), spawn(), |letter| async move { id(&letter) }))
        .assert_passed();
}

// 11.2, D19: what the sink does not take goes to the spill, and it is not asked again at once.
#[test]
fn a_failing_sink_spills_and_is_left_alone() {
    let dir = Dir::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let sink = BlockingSink::with_spill(dir.spill(), move |_: &DeadLetter| {
        counter.fetch_add(1, Ordering::SeqCst);
        Err::<String, _>(StoreError::new(StoreErrorKind::Full, "the queue is full"))
    })
    .unwrap();
    for job in ["a", "b", "c"] {
        match outcome(sink.submit(letter(job))) {
            Parking::Spilled { path, because } => {
                assert!(path.starts_with(&dir.0));
                assert_eq!(because.kind(), StoreErrorKind::Full);
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(dir.spilled(), ["a", "b", "c"]);
}

// D19: a letter without sense says nothing about the sink.
#[test]
fn a_refused_letter_does_not_take_the_sink_down() {
    let dir = Dir::new();
    let sink = BlockingSink::with_spill(dir.spill(), |letter: &DeadLetter| match letter.job_id.as_deref() {
        Some("bad") => Err(StoreError::new(StoreErrorKind::Invalid, "no such queue")),
        _ => Ok(letter.park_id.to_string()),
    })
    .unwrap();
    assert!(matches!(outcome(sink.submit(letter("bad"))), Parking::Spilled { .. }));
    assert!(matches!(outcome(sink.submit(letter("good"))), Parking::Parked { .. }));
}

// D5: a panic in the closure is the letter's failure, not the thread's end.
#[test]
fn a_panic_spills_the_letter_and_the_sink_goes_on() {
    let dir = Dir::new();
    let sink = BlockingSink::with_spill(dir.spill(), |letter: &DeadLetter| {
        assert_ne!(letter.job_id.as_deref(), Some("bad"), "on purpose");
        Ok::<_, StoreError>(letter.park_id.to_string())
    })
    .unwrap();
    assert!(matches!(outcome(sink.submit(letter("good"))), Parking::Parked { .. }));
    assert!(matches!(outcome(sink.submit(letter("bad"))), Parking::Spilled { .. }));
    let closed = sink.close(PATIENCE);
    assert!(closed.ended);

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let sink = AsyncSink::with_spill(
        dir.spill(),
        |task| drop(runtime.spawn(task)),
        |letter| async move {
            assert_ne!(letter.job_id.as_deref(), Some("bad async"), "on purpose");
            Ok::<_, StoreError>(letter.park_id.to_string())
        },
    );
    assert!(matches!(outcome(sink.submit(letter("bad async"))), Parking::Spilled { .. }));
    assert!(sink.close(PATIENCE).wait(PATIENCE).unwrap().ended);
    assert_eq!(dir.spilled(), ["bad async"]);
}

// D18: with the spill failing too, the loss is counted and told.
#[test]
fn a_letter_that_nobody_takes_is_a_loud_loss() {
    let before = lost();
    let nowhere = Spill::in_dirs("queue", [PathBuf::from("/nonexistent/retry")]);
    let fail = |_: &DeadLetter| Err::<String, _>("no connection");
    let sink = BlockingSink::with_spill(nowhere, fail).unwrap();
    match outcome(sink.submit(letter("a"))) {
        Parking::Lost { because } => {
            let text = because.to_string();
            assert!(text.contains("no connection") && text.contains("/nonexistent/retry"), "{text}");
        }
        other => panic!("{other}"),
    }
    assert!(lost() > before);
}

// D8: what an earlier process spilled is brought home at the start, in the order it was spilled.
#[test]
fn spilled_letters_come_home_at_the_next_start() {
    let dir = Dir::new();
    let fail = |_: &DeadLetter| Err::<String, _>("no connection");
    let sink = BlockingSink::with_spill(dir.spill(), fail).unwrap();
    for job in ["a", "b", "c"] {
        drop(sink.submit(letter(job)));
    }
    drop(sink);
    assert_eq!(dir.spilled(), ["a", "b", "c"]);
    let (home, arrivals) = mpsc::channel();
    let sink = BlockingSink::with_spill(dir.spill(), move |letter: &DeadLetter| {
        home.send(job(letter)).unwrap();
        id(letter)
    })
    .unwrap();
    let jobs: Vec<_> = (0..3).map(|_| arrivals.recv_timeout(PATIENCE).unwrap()).collect();
    assert_eq!(jobs, ["a", "b", "c"]);
    assert!(sink.close(PATIENCE).ended);
    assert_eq!(dir.spilled(), Vec::<String>::new());
}

#[test]
fn spilled_letters_come_home_to_an_asynchronous_sink() {
    let dir = Dir::new();
    dir.spill().append(&letter("a")).unwrap();
    let (home, arrivals) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let sink = AsyncSink::with_spill(
        dir.spill(),
        |task| drop(runtime.spawn(task)),
        move |letter| {
            home.send(job(&letter)).unwrap();
            async move { id(&letter) }
        },
    );
    assert_eq!(arrivals.recv_timeout(PATIENCE).unwrap(), "a");
    assert!(sink.close(PATIENCE).wait(PATIENCE).unwrap().ended);
    assert_eq!(dir.spilled(), Vec::<String>::new());
}

// D8: a letter the sink refuses stays in its file, the others come home, and it is not offered in a loop.
#[test]
fn a_refused_letter_stays_in_the_spill() {
    let dir = Dir::new();
    for job in ["a", "bad", "c"] {
        dir.spill().append(&letter(job)).unwrap();
    }
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let sink = BlockingSink::with_spill(dir.spill(), move |letter: &DeadLetter| {
        log.lock().unwrap().push(job(letter));
        match letter.job_id.as_deref() {
            Some("bad") => Err(StoreError::new(StoreErrorKind::Invalid, "no such queue")),
            _ => Ok(letter.park_id.to_string()),
        }
    })
    .unwrap();
    assert!(matches!(outcome(sink.submit(letter("live"))), Parking::Parked { .. }));
    assert!(sink.close(PATIENCE).ended);
    assert_eq!(dir.spilled(), ["bad"]);
    let mut asked = asked.lock().unwrap().clone();
    asked.sort();
    assert_eq!(asked, ["a", "bad", "c", "live"]);
}

/// A sink whose closure waits until it is let go.
struct Gated {
    sink: BlockingSink,
    /// Dropped, it lets all letters go.
    gate: mpsc::Sender<()>,
    parked: Arc<Mutex<Vec<String>>>,
    entries: mpsc::Receiver<()>,
}

fn gated(dir: &Dir) -> Gated {
    let (gate, wait) = mpsc::channel::<()>();
    let (entered, entries) = mpsc::channel();
    let parked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&parked);
    let sink = BlockingSink::with_spill(dir.spill(), move |letter: &DeadLetter| {
        let _nobody_asks = entered.send(());
        let _let_go = wait.recv();
        log.lock().unwrap().push(job(letter));
        id(letter)
    })
    .unwrap();
    Gated { sink, gate, parked, entries }
}

// D5: handing over never blocks, whatever the sink does; a dropped ticket changes nothing.
#[test]
fn handing_over_does_not_wait_for_the_sink() {
    let dir = Dir::new();
    let Gated { sink, gate, parked, entries } = gated(&dir);
    for n in 0..1_500 {
        drop(sink.submit(letter(&n.to_string())));
    }
    entries.recv_timeout(PATIENCE).unwrap();
    assert_eq!(sink.waiting(), 1_500);
    assert!(sink.overflowed() >= 499, "{}", sink.overflowed());
    drop(gate);
    assert!(sink.close(PATIENCE).ended);
    let jobs: Vec<_> = (0..1_500).map(|n| n.to_string()).collect();
    assert_eq!(*parked.lock().unwrap(), jobs);
}

// D5: closing drains first, spills what is left, and says what it did.
#[test]
fn closing_spills_what_a_stuck_sink_does_not_take() {
    let dir = Dir::new();
    let Gated { sink, gate, parked: _, entries } = gated(&dir);
    let tickets: Vec<_> = ["a", "b", "c"].map(|job| sink.submit(letter(job))).into();
    entries.recv_timeout(PATIENCE).unwrap();
    let closed = sink.close(Duration::ZERO);
    assert_eq!((closed.spilled, closed.ended), (3, false));
    // The letter the closure is stuck in is there too: it may be in both places, and never in none.
    assert_eq!(dir.spilled(), ["a", "b", "c"]);
    for ticket in tickets {
        assert!(matches!(outcome(ticket), Parking::Spilled { .. }));
    }
    match outcome(sink.submit(letter("late"))) {
        Parking::Spilled { because, .. } => assert_eq!(because.kind(), StoreErrorKind::Closed),
        other => panic!("{other}"),
    }
    drop(gate);
}

// D5: dropping the last handle drains too.
#[test]
fn dropping_the_last_handle_parks_what_waits() {
    let dir = Dir::new();
    let parked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&parked);
    let sink = BlockingSink::with_spill(dir.spill(), move |letter: &DeadLetter| {
        counter.fetch_add(1, Ordering::SeqCst);
        id(letter)
    })
    .unwrap();
    let other = sink.clone();
    drop(sink);
    for n in 0..100 {
        drop(other.submit(letter(&n.to_string())));
    }
    drop(other);
    assert_eq!(parked.load(Ordering::SeqCst), 100);
}

// D5: a runtime that stops takes no letter with it.
#[test]
fn the_end_of_the_runtime_spills_what_waits() {
    let dir = Dir::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let entered = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&entered);
    let sink = AsyncSink::with_spill(
        dir.spill(),
        |task| drop(runtime.spawn(task)),
        move |_| {
            flag.store(true, Ordering::SeqCst);
            std::future::pending::<Result<String, Infallible>>()
        },
    );
    let tickets: Vec<_> = ["a", "b", "c"].map(|job| sink.submit(letter(job))).into();
    while !entered.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    drop(runtime);
    for ticket in tickets {
        assert!(matches!(outcome(ticket), Parking::Spilled { .. }));
    }
    assert_eq!(dir.spilled(), ["a", "b", "c"]);
    assert!(matches!(outcome(sink.submit(letter("late"))), Parking::Spilled { .. }));
}

// D5: after the last handle is gone the task ends, and what waited is parked.
#[tokio::test]
async fn an_asynchronous_sink_ends_with_its_last_handle() {
    let dir = Dir::new();
    let (home, arrivals) = mpsc::channel();
    let mut task = None;
    let sink = AsyncSink::with_spill(
        dir.spill(),
        |future| task = Some(tokio::spawn(future)),
        move |letter| {
            home.send(job(&letter)).unwrap();
            async move { id(&letter) }
        },
    );
    for n in 0..10 {
        drop(sink.submit(letter(&n.to_string())));
    }
    drop(sink);
    task.unwrap().await.unwrap();
    assert_eq!(arrivals.iter().count(), 10);
}
