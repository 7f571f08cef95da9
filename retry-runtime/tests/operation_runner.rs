//! Running bulk operations: side by side, at a rate, along a ramp, through pauses and crashes.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, BulkOperations, DeadLetter, DeadLetterSink, DeadLetterStore, EventQuery, Filter, ItemOutcome, LetterState,
    ManualClock, MemoryStore, Operation, OperationOptions, OperationRequest, OperationRunner, OperationStatus, Payload,
    ReplayError, Replayer, Steer, Verb,
};
use retry_runtime::error::StoreErrorKind;
use retry_runtime::testing::VirtualWaits;

fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_767_323_045)
}

fn ada() -> Actor {
    Actor::new("ada", "the quota was raised")
}

struct Bench {
    store: Arc<MemoryStore>,
    time: ManualClock,
}

impl Bench {
    fn new(jobs: usize) -> Self {
        let time = ManualClock::new(start());
        let bench = Self { store: Arc::new(MemoryStore::with_clock(time.clock())), time };
        for n in 0..jobs {
            bench.park("fetch", &format!("{n:03}"));
        }
        bench
    }

    fn park(&self, kind: &str, job: &str) {
        let mut letter = DeadLetter::new(kind, StopReason::Exhausted, start());
        letter.job_id = Some(job.into());
        letter.payload = Payload::Json(format!("\"{job}\""));
        assert!(self.store.submit(letter).wait(Duration::from_secs(30)).unwrap().is_kept());
    }

    async fn begin(&self, options: impl FnOnce(&mut OperationOptions)) -> Operation {
        let mut request = OperationRequest::new(Verb::Replay, Filter::all());
        options(&mut request.options);
        self.store.start(request, ada()).await.unwrap()
    }

    fn runner(&self) -> OperationRunner {
        OperationRunner::new(Arc::clone(&self.store))
    }

    async fn operation(&self, op_id: &str) -> Operation {
        self.store.operation(op_id.to_owned()).await.unwrap().unwrap()
    }

    async fn count(&self, state: LetterState) -> u64 {
        let mut filter = Filter::all();
        filter.states.push(state);
        self.store.count(filter).await.unwrap()
    }
}

fn counts(operation: &Operation) -> BTreeMap<&'static str, u64> {
    operation.counts.iter().map(|(outcome, n)| (outcome.as_str(), n)).collect()
}

// S1: the audit of a letter names who wanted the operation, and why; another name only where the runner says one
#[tokio::test]
async fn letters_change_in_the_name_of_whoever_wanted_it() {
    let bench = Bench::new(2);
    let op = bench.begin(|_| ()).await;
    bench.runner().on("fetch", |_| async { Ok::<(), ReplayError>(()) }).run(&op.id).await.unwrap();
    let mut filter = Filter::all();
    filter.states.push(LetterState::Recovered);
    let back = OperationRequest::new(Verb::Restore { more_replays: 1 }, filter);
    let back = bench.store.start(back, ada()).await.unwrap();
    bench.runner().actor(Actor::new("bob", "")).run(&back.id).await.unwrap();
    for (op, name, reason) in [(op.id, "ada", "the quota was raised"), (back.id, "bob", "")] {
        let page = bench.store.events(EventQuery::operation(op)).await.unwrap();
        let of_letters: Vec<_> = page.events.iter().filter(|event| event.letter_id.is_some()).collect();
        assert!(of_letters.len() >= 2, "{page:?}");
        for event in of_letters {
            assert_eq!((event.actor.as_deref(), event.reason.as_deref()), (Some(name), Some(reason)), "{event:?}");
        }
    }
}

// B29: progress, and a report that adds up.
#[tokio::test]
async fn a_run_tells_its_progress_and_adds_up() {
    let bench = Bench::new(10);
    bench.park("store", "other");
    let op = bench.begin(|options| options.stop_ratio = None).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let of_runner = Arc::clone(&seen);
    let runner = bench
        .runner()
        .on("fetch", |job| async move {
            match job.job_id.as_str() {
                "003" => Err(ReplayError::failed("no")),
                "004" => Err(ReplayError::gone("moved away")),
                "005" => Err(ReplayError::not_started("no such command")),
                "006" => panic!("on purpose"),
                _ => Ok(()),
            }
        })
        .progress(move |operation| of_runner.lock().unwrap().push(operation.counts.clone()));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let left = runner.run(&op.id).await.unwrap();
    std::panic::set_hook(hook);
    let wanted = [("blocked", 1), ("gone", 1), ("not_started", 1), ("recovered", 6), ("still_failing", 2)];
    assert_eq!(counts(&left), BTreeMap::from(wanted));
    assert_eq!(left.status, OperationStatus::Paused);
    assert_eq!(left.note.as_deref(), Some("1 blocked, 1 not started: resume it when they can be replayed"));
    let seen = seen.lock().unwrap().clone();
    assert!(seen.len() > 10 && seen.iter().all(|counts| counts.total() == 11), "{seen:?}");
    assert_eq!(bench.count(LetterState::Replaying).await, 0);
    // The next run takes up what waited, and nothing else.
    bench.store.steer(op.id.clone(), Steer::Resume, ada()).await.unwrap();
    let again = bench.runner().on_blocking("fetch", |_| Ok::<_, ReplayError>(()));
    let again = again.on_blocking("store", |_| Ok::<_, ReplayError>(()));
    let left = again.run(&op.id).await.unwrap();
    assert_eq!(left.status, OperationStatus::Done);
    assert_eq!(left.counts.get(ItemOutcome::Recovered), 8);
}

// B25: concurrency; never more than asked for, and that many at once.
#[tokio::test]
async fn handlers_run_side_by_side() {
    let bench = Bench::new(20);
    let op = bench.begin(|options| options.concurrency = 4).await;
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let of_handler = (Arc::clone(&now), Arc::clone(&most));
    let runner = bench.runner().on("fetch", move |_| {
        let (now, most) = of_handler.clone();
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, ReplayError>(())
        }
    });
    let left = runner.run(op.id).await.unwrap();
    assert_eq!((left.counts.get(ItemOutcome::Recovered), left.status), (20, OperationStatus::Done));
    assert_eq!(most.load(Ordering::SeqCst), 4);
}

// Blocking handlers get a thread each: this one goes on only when three are there.
#[test]
fn blocking_handlers_run_side_by_side() {
    let bench = Bench::new(9);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let op = runtime.block_on(bench.begin(|options| options.concurrency = 3));
    let three = Arc::new(Barrier::new(3));
    let runner = bench.runner().on_blocking("fetch", move |_| {
        three.wait();
        assert!(retry_runtime::dead_letter::ReplayScope::current().is_some());
        Ok::<_, ReplayError>(())
    });
    let left = runner.run_blocking(op.id).unwrap();
    assert_eq!((left.counts.get(ItemOutcome::Recovered), left.status), (9, OperationStatus::Done));
}

// B25: a fractional rate; evenly spaced from the first.
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn a_rate_spaces_the_starts() {
    let bench = Bench::new(5);
    let op = bench.begin(|options| (options.rate, options.concurrency) = (Some(0.5), 4)).await;
    let begun = tokio::time::Instant::now();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let of_handler = Arc::clone(&starts);
    let runner = bench.runner().on("fetch", move |_| {
        of_handler.lock().unwrap().push(begun.elapsed().as_millis());
        async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Ok::<_, ReplayError>(())
        }
    });
    assert_eq!(runner.run(op.id).await.unwrap().status, OperationStatus::Done);
    let starts: Vec<_> = starts.lock().unwrap().iter().map(|ms| (ms + 5) / 1_000).collect();
    assert_eq!(starts, [0, 2, 4, 6, 8]);
}

// The same without a runtime: by the thread's waits.
#[test]
fn a_blocking_run_keeps_its_rate() {
    let bench = Bench::new(4);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let op = runtime.block_on(bench.begin(|options| options.rate = Some(0.25)));
    let waits = VirtualWaits::start();
    let runner = bench.runner().on_blocking("fetch", |_| Ok::<_, ReplayError>(()));
    assert_eq!(runner.run_blocking(op.id).unwrap().status, OperationStatus::Done);
    let waited = waits.recorded();
    assert_eq!(waited.len(), 3, "{waited:?}");
    assert!(waited.iter().all(|wait| wait.abs_diff(Duration::from_secs(4)) < Duration::from_secs(1)), "{waited:?}");
}

// A plain replay at a rate: the first letter at once, the others evenly spaced.
#[test]
fn a_plain_replay_keeps_a_rate_too() {
    let bench = Bench::new(3);
    let waits = VirtualWaits::start();
    let replayer = Replayer::new(Arc::clone(&bench.store)).execute().rate(0.5);
    let report = replayer.on_blocking("fetch", |_| Ok::<_, ReplayError>(())).run_blocking().unwrap();
    assert_eq!(report.recovered, 3);
    let waited = waits.recorded();
    assert_eq!(waited.len(), 2, "{waited:?}");
    assert!(waited.iter().all(|wait| wait.abs_diff(Duration::from_secs(2)) < Duration::from_secs(1)), "{waited:?}");
}

// B25: 1, 10, 100: before a stage begins, the one before is in.
#[tokio::test]
async fn a_ramp_waits_for_each_stage() {
    let bench = Bench::new(130);
    let op = bench.begin(|options| (options.canary, options.concurrency) = (true, 1_000)).await;
    let (running, stages) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let of_handler = Arc::clone(&running);
    let of_progress = Arc::clone(&stages);
    let runner = bench
        .runner()
        .on("fetch", move |_| {
            let running = Arc::clone(&of_handler);
            async move {
                running.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, ReplayError>(())
            }
        })
        .progress(move |operation| {
            of_progress.lock().unwrap().push((operation.stage.unwrap(), operation.counts.running()));
        });
    let left = runner.run(op.id).await.unwrap();
    assert_eq!(left.counts.get(ItemOutcome::Recovered), 130);
    let stages = stages.lock().unwrap();
    for (stage, most) in [(1, 1), (10, 10), (100, 100), (1_000, 19)] {
        let seen = stages.iter().filter(|(at, _)| *at == stage).map(|(_, running)| *running).max();
        assert_eq!(seen, Some(most), "{stages:?}");
    }
}

// B25, S4: the first letter of a ramp fails: one handler ran, and no second one.
#[tokio::test]
async fn a_bad_ramp_stops_after_one() {
    let bench = Bench::new(50);
    let op = bench.begin(|options| (options.canary, options.concurrency) = (true, 8)).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let runner = bench.runner().on("fetch", move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Err::<(), _>(ReplayError::failed("still down")) }
    });
    let left = runner.run(op.id).await.unwrap();
    assert_eq!((runs.load(Ordering::SeqCst), left.status), (1, OperationStatus::Paused));
    assert_eq!(left.note.as_deref(), Some("1 of 1 replays failed, the limit is a share of 0.5"));
}

// B16
#[tokio::test]
async fn too_many_failures_stop_the_run() {
    let bench = Bench::new(100);
    let op = bench.begin(|_| ()).await;
    let runner = bench.runner().on_blocking("fetch", |job| {
        let n: u32 = job.job_id.parse().unwrap();
        if n % 2 == 0 { Err(ReplayError::failed("no")) } else { Ok(()) }
    });
    let left = runner.run(op.id).await.unwrap();
    assert_eq!((left.counts.results(), left.counts.pending()), (20, 80));
    assert_eq!(left.note.as_deref(), Some("10 of 20 replays failed, the limit is a share of 0.5"));
}

// B26: what is paused from elsewhere begins nothing more; a handler that runs is let to its end.
#[tokio::test]
async fn a_pause_is_seen_before_the_next_letter() {
    for (steer, status) in [(Steer::Pause, OperationStatus::Paused), (Steer::Cancel, OperationStatus::Cancelled)] {
        let bench = Bench::new(10);
        let op = bench.begin(|_| ()).await;
        let (store, op_id) = (Arc::clone(&bench.store), op.id.clone());
        let runner = bench.runner().on("fetch", move |job| {
            let (store, op_id) = (Arc::clone(&store), op_id.clone());
            async move {
                if job.job_id == "002" {
                    store.steer(op_id, steer, ada()).await.unwrap();
                }
                Ok::<_, ReplayError>(())
            }
        });
        let left = runner.run(&op.id).await.unwrap();
        assert_eq!((left.status, left.counts.get(ItemOutcome::Recovered), left.counts.pending()), (status, 3, 7));
    }
}

// B26: also while nothing is to begin for a long time. The wait itself is tokio's, and stands still here: what ends it is
// the sign of life.
#[tokio::test]
async fn a_pause_is_seen_within_a_heartbeat() {
    let bench = Bench::new(3);
    let op = bench.begin(|options| options.rate = Some(0.0001)).await;
    let (store, op_id) = (Arc::clone(&bench.store), op.id.clone());
    let runner = bench.runner().lease(Duration::from_millis(30)).on_blocking("fetch", |_| Ok::<_, ReplayError>(()));
    let runner = runner.progress(move |operation| {
        if operation.counts.running() == 1 {
            let pausing = store.steer(op_id.clone(), Steer::Pause, ada());
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(std::pin::pin!(pausing).poll(&mut cx).is_ready());
        }
    });
    let left = tokio::time::timeout(Duration::from_secs(60), runner.run(&op.id)).await.unwrap().unwrap();
    assert_eq!((left.status, left.counts.get(ItemOutcome::Recovered)), (OperationStatus::Paused, 1));
}

// D13: `stop` ends the run, gives its letter back, and says why.
#[tokio::test]
async fn a_handler_that_stops_the_run_pauses_it_with_a_note() {
    let bench = Bench::new(5);
    let op = bench.begin(|_| ()).await;
    let runner = bench.runner().on_blocking("fetch", |job| {
        if job.job_id == "002" { Err(ReplayError::stop("connection refused")) } else { Ok(()) }
    });
    let left = runner.run(&op.id).await.unwrap();
    assert_eq!((left.status, left.note.as_deref()), (OperationStatus::Paused, Some("connection refused")));
    let wanted = BTreeMap::from([("not_started", 1), ("pending", 2), ("recovered", 2)]);
    assert_eq!(counts(&left), wanted);
    assert_eq!(bench.count(LetterState::Parked).await, 3);
}

// An orderly shutdown: the next runner goes on at once.
#[tokio::test]
async fn a_stopped_run_is_followed_at_once() {
    let bench = Bench::new(6);
    let op = bench.begin(|_| ()).await;
    let runner = bench.runner();
    let stopper = runner.stopper();
    let runner = runner.on_blocking("fetch", move |job| {
        if job.job_id == "003" {
            stopper.stop();
        }
        Ok::<_, ReplayError>(())
    });
    let left = runner.run(&op.id).await.unwrap();
    assert_eq!((left.status, left.runner.as_deref()), (OperationStatus::Pending, None));
    assert_eq!((left.counts.get(ItemOutcome::Recovered), left.counts.pending()), (4, 2));
    let next = bench.runner().on_blocking("fetch", |_| Ok::<_, ReplayError>(()));
    assert_eq!(next.run(&op.id).await.unwrap().counts.get(ItemOutcome::Recovered), 6);
}

/// Polls a future until a condition holds, then drops it.
async fn drop_when(run: impl Future, mut condition: impl FnMut() -> bool) {
    let mut run = Box::pin(run);
    std::future::poll_fn(|cx| {
        assert!(run.as_mut().poll(cx).is_pending());
        if condition() {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

// B27: a run that is dropped gives letters and operation back, and what it did stays done.
#[tokio::test]
async fn a_dropped_run_gives_back_what_it_holds() {
    let bench = Bench::new(6);
    let op = bench.begin(|options| options.concurrency = 2).await;
    let hanging = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&hanging);
    let runner = bench.runner().on("fetch", move |job| {
        let counter = Arc::clone(&counter);
        async move {
            if job.job_id.as_str() > "002" {
                counter.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
            Ok::<_, ReplayError>(())
        }
    });
    drop_when(runner.run(&op.id), || hanging.load(Ordering::SeqCst) == 2).await;
    let left = bench.operation(&op.id).await;
    assert_eq!((left.status, left.counts.running(), left.counts.pending()), (OperationStatus::Pending, 0, 3));
    assert_eq!((bench.count(LetterState::Replaying).await, bench.count(LetterState::Parked).await), (0, 3));
    let next = bench.runner().on_blocking("fetch", |_| Ok::<_, ReplayError>(()));
    let done = next.run(&op.id).await.unwrap();
    assert_eq!((done.status, done.counts.get(ItemOutcome::Recovered)), (OperationStatus::Done, 6));
}

// A blocking handler that runs on cannot be stopped: its letter is given back when it ends, not while it works.
#[test]
fn a_dropped_run_leaves_a_working_thread_its_letter() {
    let bench = Bench::new(2);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let op = runtime.block_on(bench.begin(|options| options.concurrency = 2));
    let (go, stop) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(3)));
    let of_handler = (Arc::clone(&go), Arc::clone(&stop));
    let runner = bench.runner().on_blocking("fetch", move |_| {
        of_handler.0.wait();
        of_handler.1.wait();
        Ok::<_, ReplayError>(())
    });
    let mut run = Box::pin(runner.run(&op.id));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(run.as_mut().poll(&mut cx).is_pending());
    go.wait();
    drop(run);
    assert_eq!(runtime.block_on(bench.count(LetterState::Replaying)), 2);
    stop.wait();
    while runtime.block_on(bench.count(LetterState::Replaying)) > 0 {
        std::thread::yield_now();
    }
    let left = runtime.block_on(bench.operation(&op.id));
    assert_eq!((left.counts.pending(), left.status), (2, OperationStatus::Pending));
}

// B27, D13: the runner is gone without a word. Another one waits for the letter's lease, and a crash is counted.
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn a_runner_that_died_is_followed_after_its_lease() {
    let bench = Bench::new(5);
    let op = bench.begin(|_| ()).await;
    let lease = Duration::from_secs(60);
    let dead = bench.store.take(op.id.clone(), "dead".into(), lease, false, ada()).await.unwrap().ticket();
    let claim = retry_runtime::dead_letter::MemberClaim::new(["fetch"], "dead");
    let claimed = bench.store.claim_members(dead, claim, ada()).await.unwrap().claimed;
    assert_eq!(claimed.len(), 1);
    let time = bench.time.clone();
    // The store's clock goes on with each letter, and whenever the runner has nothing to do but to wait.
    let runner = || {
        let time = time.clone();
        bench
            .runner()
            .on_blocking("fetch", |_| Ok::<_, ReplayError>(()))
            .progress(move |_| time.advance(Duration::from_secs(9)))
    };
    let refused = runner().run(&op.id).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Conflict);
    let left = runner().take_over().run(&op.id).await.unwrap();
    assert_eq!((left.status, left.counts.get(ItemOutcome::Recovered)), (OperationStatus::Done, 5));
    let row = bench.store.get(claimed[0].row.letter_id.clone()).await.unwrap().unwrap().row;
    assert_eq!((row.crashes, row.replays, row.state), (1, 1, LetterState::Recovered));
}

// D21: a runner that another one has followed begins nothing more, and its result is taken.
#[tokio::test]
async fn an_older_runner_ends_at_its_next_letter() {
    let bench = Bench::new(4);
    let op = bench.begin(|_| ()).await;
    let (store, op_id) = (Arc::clone(&bench.store), op.id.clone());
    let runner = bench.runner().on("fetch", move |job| {
        let (store, op_id) = (Arc::clone(&store), op_id.clone());
        async move {
            if job.job_id == "001" {
                store.take(op_id, "newer".into(), Duration::from_secs(60), true, ada()).await.unwrap();
            }
            Ok::<_, ReplayError>(())
        }
    });
    assert_eq!(runner.run(&op.id).await.unwrap_err().kind(), StoreErrorKind::StaleLease);
    let left = bench.operation(&op.id).await;
    assert_eq!((left.runner.as_deref(), left.status), (Some("newer"), OperationStatus::Running));
    assert_eq!((left.counts.get(ItemOutcome::Recovered), left.counts.pending()), (2, 2));
}

#[tokio::test]
async fn discards_and_restores_need_no_handlers() {
    let bench = Bench::new(450);
    let request = OperationRequest::new(Verb::Discard, Filter::all());
    let op = bench.store.start(request, ada()).await.unwrap();
    let left = bench.runner().run(op.id).await.unwrap();
    assert_eq!((left.status, left.counts.get(ItemOutcome::Discarded)), (OperationStatus::Done, 450));
    let request = OperationRequest::new(Verb::Restore { more_replays: 1 }, Filter::all());
    let op = bench.store.start(request, ada()).await.unwrap();
    let left = bench.runner().run_blocking(op.id).unwrap();
    assert_eq!((left.counts.get(ItemOutcome::Restored), bench.count(LetterState::Parked).await), (450, 450));
}

// B19, B37: jobs that die again while the operation runs are met once, and keep their letters.
#[tokio::test]
async fn jobs_that_fail_again_do_not_keep_it_going() {
    let bench = Bench::new(30);
    let op = bench.begin(|options| options.stop_ratio = None).await;
    let store = Arc::clone(&bench.store);
    let runner = bench.runner().on("fetch", move |job| {
        let store = Arc::clone(&store);
        async move {
            let mut again = DeadLetter::new("fetch", StopReason::Exhausted, start() + Duration::from_secs(1));
            again.job_id = Some(format!("new of {}", job.job_id));
            assert!(store.submit(again).await.is_kept());
            Err::<(), _>(ReplayError::failed("no"))
        }
    });
    let left = runner.run(op.id).await.unwrap();
    assert_eq!((left.status, left.counts.get(ItemOutcome::StillFailing)), (OperationStatus::Done, 30));
    assert_eq!(bench.count(LetterState::Parked).await, 60);
}
