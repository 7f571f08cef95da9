//! The standing worker: what it takes and when, operations, failing stores, and its end.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use retry_runtime::dead_letter::{
    Actor, BulkOperations, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Filter, ItemOutcome, LetterRow,
    LetterState, ManualClock, MemoryStore, OperationRequest, OperationStatus, Parking, Payload, Release, ReplayError,
    ReplayJob, ReplayWorker, Steer, Verb, WorkerReport,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::observe::set_listener;
use retry_runtime::testing::{Planted, VirtualWaits};
use retry_runtime::{Disposition, StopReason};
use support::{Faulty, faulty};
use tokio::time::Instant;

#[path = "support/faulty.rs"]
mod support;

static NOTICES: LazyLock<Mutex<Vec<(&'static str, String)>>> = LazyLock::new(Mutex::default);

/// What was said so far about the worker of a name.
fn said(worker: &str) -> Vec<(&'static str, String)> {
    let said = NOTICES.lock().unwrap();
    said.iter().filter(|(_, message)| message.starts_with(worker)).cloned().collect()
}

fn listen() {
    set_listener(|notice| NOTICES.lock().unwrap().push((notice.name, notice.message.clone())));
}

fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_767_323_045)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ada() -> Actor {
    Actor::new("ada", "the quota was raised")
}

fn letter(kind: &str, job: &str) -> DeadLetter {
    let mut letter = DeadLetter::new(kind, StopReason::Exhausted, start());
    letter.job_id = Some(job.into());
    letter.payload = Payload::Json(format!("\"{job}\""));
    letter
}

fn changed(job: &str, change: impl FnOnce(&mut DeadLetter)) -> DeadLetter {
    let mut letter = letter("fetch", job);
    change(&mut letter);
    letter
}

struct Bench {
    store: Arc<Planted<Faulty>>,
    time: ManualClock,
    began: Instant,
}

/// Jobs, and how many seconds after the beginning each was done.
type Calls = Arc<Mutex<Vec<(String, u64)>>>;

impl Bench {
    /// The store's clock follows tokio's, which is paused.
    fn new() -> Self {
        listen();
        let time = ManualClock::new(start());
        let store = Arc::new(faulty(MemoryStore::with_clock(time.clock())));
        let of_task = time.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                of_task.advance(Duration::from_secs(1));
            }
        });
        Self { store, time, began: Instant::now() }
    }

    async fn park(&self, letter: DeadLetter) -> String {
        match self.store.submit(letter).await {
            Parking::Parked { letter_id } => letter_id,
            other => panic!("{other}"),
        }
    }

    fn worker(&self, name: &str) -> ReplayWorker {
        ReplayWorker::new(Arc::clone(&self.store)).name(name).start_after(Duration::ZERO)
    }

    fn calls(&self) -> (Calls, impl Fn(&str) + Clone + Send + Sync + 'static) {
        let calls = Calls::default();
        let (of_handler, began) = (Arc::clone(&calls), self.began);
        (calls, move |job: &str| of_handler.lock().unwrap().push((job.to_owned(), began.elapsed().as_secs())))
    }

    async fn row(&self, id: &str) -> LetterRow {
        self.store.get(id.to_owned()).await.unwrap().unwrap().row
    }

    async fn count(&self, state: LetterState) -> u64 {
        let mut filter = Filter::all();
        filter.states.push(state);
        self.store.count(filter).await.unwrap()
    }

    /// Runs a worker for a while, then stops it.
    async fn run_for(&self, worker: ReplayWorker, wait: Duration) -> WorkerReport {
        let stopper = worker.stopper();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            stopper.stop();
        });
        worker.run().await.unwrap()
    }
}

fn jobs(calls: &Calls) -> Vec<String> {
    calls.lock().unwrap().iter().map(|(job, _)| job.clone()).collect()
}

// D12: standing workers obey the back-off between replays: 1, 2, 4 and 8 minutes, and then it is abandoned.
#[tokio::test(start_paused = true)]
async fn the_backoff_is_obeyed_and_five_failures_abandon() {
    let bench = Bench::new();
    let id = bench.park(letter("fetch", "a")).await;
    let (calls, call) = bench.calls();
    let worker = bench.worker("backoff").on("fetch", move |job| {
        call(&job.job_id);
        async { Err::<(), _>(ReplayError::failed("no")) }
    });
    let report = bench.run_for(worker, seconds(3_600)).await;
    assert_eq!((report.still_failing, report.abandoned, report.letters()), (4, 1, 5));
    assert_eq!(bench.row(&id).await.state, LetterState::Abandoned);
    let at: Vec<_> = calls.lock().unwrap().iter().map(|(_, at)| *at).collect();
    assert_eq!(at[0], 0);
    for (nth, pair) in at.windows(2).enumerate() {
        let backoff = 60 << nth;
        // It looks every 5 s, a fifth more or less, and the clock ticks by the second.
        assert!((backoff - 1..=backoff + 7).contains(&(pair[1] - pair[0])), "{at:?}");
    }
}

// D12, D9, C51: what only a person, a server or another worker can help is left where it is, and never claimed.
#[tokio::test(start_paused = true)]
async fn what_it_cannot_help_is_left_out_and_said() {
    let bench = Bench::new();
    let permanent = |job: &str, code: i64| {
        let mut letter = letter("fetch", job);
        (letter.reason, letter.disposition) = (StopReason::Permanent, Disposition::Permanent);
        letter.code = Some(code);
        letter
    };
    let mut ids = Vec::new();
    for (job, code) in [("p1", 403), ("p2", 401), ("p3", 403)] {
        ids.push(bench.park(permanent(job, code)).await);
    }
    let altered = changed("altered", |letter| letter.payload_altered = true);
    ids.push(bench.park(altered).await);
    let broken = changed("broken", |letter| letter.payload = Payload::Unserializable("no string".into()));
    ids.push(bench.park(broken).await);
    ids.push(bench.park(letter("store", "other")).await);
    let hinted = changed("hinted", |letter| letter.not_before = Some(start() + seconds(100)));
    bench.park(hinted).await;
    bench.park(letter("fetch", "due")).await;
    let (calls, call) = bench.calls();
    let fetch = move |job: ReplayJob| {
        call(&job.job_id);
        async { Ok::<_, ReplayError>(()) }
    };
    let report = bench.run_for(bench.worker("careful").on("fetch", fetch.clone()), seconds(300)).await;
    assert_eq!(jobs(&calls), ["due", "hinted"]);
    assert!((99..108).contains(&calls.lock().unwrap()[1].1), "{calls:?}");
    assert_eq!(report.recovered, 2);
    assert_eq!(report.left_out, BTreeMap::from([("permanent:401".into(), 1), ("permanent:403".into(), 2)]));
    for id in &ids {
        assert_eq!(bench.row(id).await.fence, 0, "never taken");
    }
    let said = said("careful");
    assert_eq!(said.len(), 1, "once, and nothing else: {said:?}");
    assert_eq!(said[0].0, "replay_worker_leaves_out");
    assert!(said[0].1.contains("2 permanent:403, 1 permanent:401"), "{said:?}");
    // Asked for, or named, permanent ones are taken.
    let mut named = Filter::all();
    named.dispositions.push(Disposition::Permanent);
    named.job_ids.push("p2".into());
    let worker = bench.worker("named").filter(named).on("fetch", fetch.clone());
    assert_eq!(bench.run_for(worker, seconds(30)).await.recovered, 1);
    let report = bench.run_for(bench.worker("all").permanent().on("fetch", fetch), seconds(30)).await;
    assert_eq!((report.recovered, report.left_out.len()), (2, 0));
    assert_eq!(jobs(&calls), ["due", "hinted", "p2", "p1", "p3"]);
}

// D13: what could not be started counts nothing, and is not handed out again at once, to no worker.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_started_waits_its_minute() {
    let bench = Bench::new();
    let id = bench.park(letter("fetch", "a")).await;
    let (calls, call) = bench.calls();
    let fetch = move |job: ReplayJob| {
        call(&job.job_id);
        async { Err::<(), _>(ReplayError::not_started("the breaker is open")) }
    };
    let (one, other) = (bench.worker("one").on("fetch", fetch.clone()), bench.worker("other").on("fetch", fetch));
    let reports = tokio::join!(bench.run_for(one, seconds(200)), bench.run_for(other, seconds(200)));
    let at: Vec<_> = calls.lock().unwrap().iter().map(|(_, at)| *at).collect();
    assert!(at.len() == 4 && at.windows(2).all(|pair| pair[1] - pair[0] >= 59), "{at:?}");
    assert_eq!(reports.0.not_started + reports.1.not_started, 4);
    let row = bench.row(&id).await;
    assert_eq!((row.state, row.replays, row.crashes, row.attempts), (LetterState::Parked, 0, 0, 0));
}

// When nothing can be started at all, it pauses, says so once, and says when it goes on.
#[tokio::test(start_paused = true)]
async fn when_nothing_can_be_started_it_pauses() {
    let bench = Bench::new();
    for n in 0..50 {
        bench.park(letter("fetch", &format!("{n:02}"))).await;
    }
    let began = bench.began;
    let (calls, call) = bench.calls();
    let worker = bench.worker("stuck").on("fetch", move |job| {
        call(&job.job_id);
        let works = began.elapsed() > seconds(120);
        async move { if works { Ok(()) } else { Err(ReplayError::stop("no network")) } }
    });
    let report = bench.run_for(worker, seconds(400)).await;
    let early = calls.lock().unwrap().iter().filter(|(_, at)| *at < 120).count();
    assert!((4..=12).contains(&early), "pauses of 1 to 60 s: {early}");
    assert_eq!(report.recovered, 50);
    let names: Vec<_> = said("stuck").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["replay_worker_waits", "replay_worker_goes_on"]);
}

// B25: never more at once than it may, and that many; at its rate.
#[tokio::test(start_paused = true)]
async fn concurrency_and_rate_are_kept() {
    let bench = Bench::new();
    for n in 0..20 {
        bench.park(letter("fetch", &format!("{n:02}"))).await;
    }
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let of_handler = (Arc::clone(&now), Arc::clone(&most));
    let slow = move |_| {
        let (now, most) = of_handler.clone();
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(seconds(10)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, ReplayError>(())
        }
    };
    let report = bench.run_for(bench.worker("four").concurrency(4).on("fetch", slow), seconds(55)).await;
    assert_eq!((report.recovered, most.load(Ordering::SeqCst)), (20, 4));
    for n in 0..8 {
        bench.park(letter("fetch", &format!("again {n}"))).await;
    }
    let (calls, call) = bench.calls();
    let began = bench.began.elapsed().as_secs();
    let worker = bench.worker("slowly").concurrency(9).rate(0.5).on("fetch", move |job| {
        call(&job.job_id);
        async { Ok::<_, ReplayError>(()) }
    });
    bench.run_for(worker, seconds(60)).await;
    let at: Vec<_> = calls.lock().unwrap().iter().map(|(_, at)| at - began).collect();
    assert_eq!(at, [0, 2, 4, 6, 8, 10, 12, 14]);
}

// No busy loop: while nothing is due it asks as often as it was told; and not before its start.
#[tokio::test(start_paused = true)]
async fn an_idle_worker_asks_seldom() {
    let bench = Bench::new();
    let worker = bench.worker("idle").start_after(seconds(100)).on("fetch", |_| async { Ok::<_, ReplayError>(()) });
    bench.run_for(worker, seconds(75)).await;
    assert_eq!(bench.store.asked(), (0, 0), "before its start");
    let worker = bench.worker("idle").on("fetch", |_| async { Ok::<_, ReplayError>(()) });
    bench.run_for(worker, seconds(600)).await;
    let (claims, looks) = bench.store.asked();
    assert!((100..=151).contains(&claims) && (100..=151).contains(&looks), "{claims} {looks}");
}

// D21, B27: what an operator started is run, one at a time and the oldest first; what died is taken up.
#[tokio::test(start_paused = true)]
async fn operations_that_wait_are_run() {
    let bench = Bench::new();
    for job in ["a", "b"] {
        bench.park(letter("fetch", job)).await;
        bench.park(letter("store", job)).await;
    }
    let of = |kind: &str, verb| {
        let mut filter = Filter::all();
        filter.kinds.push(kind.into());
        bench.store.start(OperationRequest::new(verb, filter), ada())
    };
    let dead = of("fetch", Verb::Replay).await.unwrap();
    bench.store.take(dead.id.clone(), "dead".into(), seconds(60), false, ada()).await.unwrap();
    let paused = of("fetch", Verb::Replay).await.unwrap();
    bench.store.steer(paused.id.clone(), Steer::Pause, ada()).await.unwrap();
    let others = of("store", Verb::Replay).await.unwrap();
    let discard = of("fetch", Verb::Discard).await.unwrap();
    let (calls, call) = bench.calls();
    let fetch = move |job: ReplayJob| {
        call(&job.job_id);
        async { Ok::<_, ReplayError>(()) }
    };
    let status = async |id: &str| bench.store.operation(id.to_owned()).await.unwrap().unwrap();
    let worker = bench.worker("runs").operations_only().on("fetch", fetch.clone());
    assert_eq!(bench.run_for(worker, seconds(50)).await.operations, 0, "the lease of the dead one lasts");
    let mut nothing = Filter::all();
    nothing.job_ids.push("none".into());
    let worker = bench.worker("runs").letters_only().filter(nothing).on("fetch", fetch.clone());
    assert_eq!(bench.run_for(worker, seconds(30)).await.operations, 0);
    let waiting = bench.store.waiting(9).await.unwrap();
    assert!(waiting.iter().any(|operation| operation.id == dead.id));
    assert_eq!(jobs(&calls).len(), 0);
    let worker = bench.worker("runs").operations_only().on("fetch", fetch.clone());
    let report = bench.run_for(worker, seconds(50)).await;
    assert_eq!((report.operations, report.letters(), report.failures), (1, 0, 0));
    let done = status(&dead.id).await;
    assert_eq!((done.status, done.counts.get(ItemOutcome::Recovered)), (OperationStatus::Done, 2));
    assert_eq!(status(&paused.id).await.status, OperationStatus::Paused);
    assert_eq!(status(&others.id).await.status, OperationStatus::Pending, "left to a worker that can");
    assert_eq!(status(&discard.id).await.status, OperationStatus::Pending);
    assert_eq!(said("runs"), []);
    // Stopped in the middle, it is given back at once.
    bench.park(letter("fetch", "c")).await;
    let long = of("fetch", Verb::Replay).await.unwrap();
    let worker = bench.worker("runs").operations_only().stop_within(seconds(5)).on("fetch", |_| async {
        tokio::time::sleep(seconds(1_000)).await;
        Ok::<_, ReplayError>(())
    });
    bench.run_for(worker, seconds(20)).await;
    let left = status(&long.id).await;
    assert_eq!((left.status, left.runner.as_deref(), left.counts.running()), (OperationStatus::Pending, None, 0));
    assert_eq!(bench.count(LetterState::Replaying).await, 0);
}

// A store that fails is waited out: said once, asked less and less often, and the worker goes on.
#[tokio::test(start_paused = true)]
async fn a_failing_store_is_waited_out() {
    let bench = Bench::new();
    bench.park(letter("fetch", "a")).await;
    for kind in [StoreErrorKind::Busy, StoreErrorKind::Unavailable, StoreErrorKind::Full, StoreErrorKind::Unknown] {
        bench.store.fail_with(Some(kind));
        let (store, before) = (Arc::clone(&bench.store), bench.store.asked());
        tokio::spawn(async move {
            tokio::time::sleep(seconds(600)).await;
            store.fail_with(None);
        });
        let name = format!("waits {kind:?}");
        let worker = bench.worker(&name).every(seconds(1)).on("fetch", |_| async { Ok::<_, ReplayError>(()) });
        let report = bench.run_for(worker, seconds(599)).await;
        let (claims, looks) = bench.store.asked();
        let asked = (claims - before.0, looks - before.1);
        assert!((12..40).contains(&asked.0) && (12..40).contains(&asked.1), "1 s to 60 s: {asked:?}");
        assert_eq!((report.letters(), report.failures), (0, u64::from(asked.0 + asked.1)));
        let names: Vec<_> = said(&name).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["replay_worker_waits"; 2], "letters and operations, once each");
        tokio::time::sleep(seconds(2)).await;
    }
    bench.store.fail_with(Some(StoreErrorKind::Busy));
    let store = Arc::clone(&bench.store);
    tokio::spawn(async move {
        tokio::time::sleep(seconds(30)).await;
        store.fail_with(None);
    });
    let worker = bench.worker("goes on").on("fetch", |_| async { Ok::<_, ReplayError>(()) });
    assert_eq!(bench.run_for(worker, seconds(120)).await.recovered, 1);
    let mut names: Vec<_> = said("goes on").into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    let (waits, on) = ("replay_worker_waits", "replay_worker_goes_on");
    assert_eq!(names, [on, on, waits, waits]);
}

// What no waiting helps ends it, aloud.
#[tokio::test(start_paused = true)]
async fn a_closed_store_ends_it_aloud() {
    let bench = Bench::new();
    bench.store.fail_with(Some(StoreErrorKind::Closed));
    let worker = bench.worker("closed").on("fetch", |_| async { Ok::<_, ReplayError>(()) });
    assert_eq!(worker.run().await.map_err(|error| error.kind()), Err(StoreErrorKind::Closed));
    assert_eq!(said("closed").into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["replay_worker_ended"]);
    let none = bench.worker("none").run().await.map_err(|error: StoreError| error.to_string());
    assert_eq!(none, Err("none has no handlers: name the kinds it can replay by `on`".to_owned()));
}

// D13: stopped, it lets handlers end for as long as they may; then, or dropped, leases are given back and nothing counts.
#[tokio::test(start_paused = true)]
async fn its_end_gives_back_what_is_not_done() {
    let bench = Bench::new();
    let mut ids = Vec::new();
    for job in ["quick", "slow", "third"] {
        ids.push(bench.park(letter("fetch", job)).await);
    }
    let fetch = |job: ReplayJob| async move {
        tokio::time::sleep(if job.job_id == "quick" { seconds(10) } else { seconds(1_000) }).await;
        Ok::<_, ReplayError>(())
    };
    let worker = bench.worker("ends").concurrency(2).stop_within(seconds(30)).on("fetch", fetch);
    let report = bench.run_for(worker, seconds(5)).await;
    assert_eq!((report.recovered, bench.began.elapsed().as_secs()), (1, 35));
    assert_eq!(bench.count(LetterState::Replaying).await, 0);
    let worker = bench.worker("dropped").concurrency(2).on("fetch", fetch);
    {
        let mut run = std::pin::pin!(worker.run());
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            assert!(run.as_mut().poll(cx).is_pending());
            if polls > 1 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        assert_eq!(bench.count(LetterState::Replaying).await, 2);
    }
    assert_eq!(bench.count(LetterState::Replaying).await, 0);
    for id in &ids[1..] {
        let row = bench.row(id).await;
        assert_eq!((row.state, row.replays, row.crashes), (LetterState::Parked, 0, 0));
    }
}

// The same without a runtime; blocking handlers have threads of their own.
#[test]
fn it_works_without_a_runtime() {
    let time = ManualClock::new(start());
    let store = Arc::new(MemoryStore::with_clock(time.clock()));
    for job in ["a", "b", "c"] {
        assert!(store.submit(letter("fetch", job)).wait(seconds(30)).unwrap().is_kept());
    }
    let waits = VirtualWaits::start();
    let both = Arc::new(std::sync::Barrier::new(3));
    let worker = ReplayWorker::new(Arc::clone(&store)).concurrency(3).on_blocking("fetch", move |_| {
        both.wait();
        Ok::<_, ReplayError>(())
    });
    let stopper = worker.stopper();
    let worker = worker.progress(move |report| {
        if report.recovered == 3 {
            stopper.stop();
        }
    });
    let report = worker.run_blocking().unwrap();
    assert_eq!(report.recovered, 3);
    let first = waits.recorded()[0];
    assert!(first >= seconds(4) && first <= seconds(6), "it starts after 5 s, a fifth more or less: {first:?}");
}

// A lease that was taken away: the handler is dropped where the store does not keep leases, or its result is late.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_counted_as_late() {
    let bench = Bench::new();
    let id = bench.park(letter("fetch", "a")).await;
    let store = Arc::clone(&bench.store);
    let worker = bench.worker("late").on("fetch", move |job| {
        let store = Arc::clone(&store);
        async move {
            store.release(job.letter_id.clone(), Release::Forced, ada()).await.unwrap();
            let mut claim = ClaimRequest::new(["fetch"], "another");
            claim.filter = Filter::id(job.letter_id);
            assert_eq!(store.claim(claim, ada()).await.unwrap().len(), 1);
            Ok::<_, ReplayError>(())
        }
    });
    let report = bench.run_for(worker, seconds(20)).await;
    assert_eq!((report.late, report.letters()), (1, 1));
    assert_eq!(bench.row(&id).await.owner.as_deref(), Some("another"));
    assert!(bench.time.now() > start());
}

#[test]
fn it_says_what_it_does() {
    let handlers = |worker: ReplayWorker| worker.on_blocking("fetch", |_| Ok::<_, ReplayError>(()));
    let worker = || handlers(ReplayWorker::new(Arc::new(MemoryStore::new())).name("w"));
    assert_eq!(
        worker().to_string(),
        "w: replays `fetch`, 1 at a time, looks every 5s; leaves out permanent failures, and altered or missing payloads"
    );
    assert_eq!(
        worker().permanent().concurrency(8).rate(2.5).letters_only().to_string(),
        "w: replays, but runs no operations, `fetch`, 8 at a time, 2.5 per second, looks every 5s; leaves out altered or \
         missing payloads"
    );
    assert_eq!(worker().operations_only().to_string(), "w: runs operations only, of `fetch`, looks every 5s");
}
