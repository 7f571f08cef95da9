//! Replays: dry by default, longest unseen first, each result committed at once, and a report that adds up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use retry_runtime::attempt::AttemptRecord;
use retry_runtime::dead_letter::{
    Actor, BoxFuture, Capabilities, ClaimRequest, Claimed, DeadLetter, DeadLetterSink, DeadLetterStore, Failure,
    Filter, LetterRow, LetterState, MAX_REPLAYS, ManualClock, MemoryStore, PageRequest, Parking, Payload, Release,
    ReplayError, ReplayReport, Replayer, hand_over,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::testing::{Faults, Planted};
use retry_runtime::{Classify, Disposition, StopReason, Verdict};

fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_767_323_045_006)
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

struct Bench {
    store: Arc<MemoryStore>,
    time: ManualClock,
}

impl Bench {
    fn new() -> Self {
        let time = ManualClock::new(start());
        Self { store: Arc::new(MemoryStore::with_clock(time.clock())), time }
    }

    fn park(&self, letter: DeadLetter) -> String {
        match self.store.submit(letter).wait(seconds(30)).unwrap() {
            Parking::Parked { letter_id } => letter_id,
            other => panic!("{other}"),
        }
    }

    /// Parks `n` jobs, `job 0` first.
    fn park_jobs(&self, n: usize) {
        for n in 0..n {
            self.park(letter("fetch", &format!("job {n}"), start() + seconds(n as u64)));
        }
        self.time.set(start() + seconds(1_000));
    }

    async fn row(&self, job: &str) -> LetterRow {
        let mut filter = Filter::all();
        filter.job_ids.push(job.into());
        self.store.list(filter, PageRequest::default()).await.unwrap().rows.remove(0)
    }

    fn replayer(&self) -> Replayer {
        Replayer::new(Arc::clone(&self.store))
    }
}

fn letter(kind: &str, job: &str, at: SystemTime) -> DeadLetter {
    let mut letter = DeadLetter::new(kind, StopReason::Exhausted, at);
    letter.job_id = Some(job.into());
    letter.payload = Payload::Json(format!("\"{job}\""));
    letter.code = Some(429);
    letter.attempts = 2;
    letter
}

fn permanent() -> Failure {
    Failure::new(StopReason::Permanent, Disposition::Permanent, "forbidden")
}

fn adds_up(report: &ReplayReport) {
    let replayed = report.recovered + report.still_failing + report.abandoned + report.gone;
    let sum = replayed + report.not_due + report.would_replay + report.skipped.total();
    assert_eq!(sum, report.matched, "{report:?}");
}

/// Job ids in the order they were handled.
type Log = Arc<Mutex<Vec<String>>>;

fn log() -> Log {
    Arc::default()
}

// B1.8: dry by default, 20 by default, and nothing is changed.
#[tokio::test]
async fn a_dry_run_says_what_it_would_do() {
    let bench = Bench::new();
    bench.park_jobs(25);
    let handled = log();
    let seen = Arc::clone(&handled);
    let replayer = bench.replayer().on_blocking("fetch", move |job| {
        seen.lock().unwrap().push(job.job_id);
        Ok::<_, ReplayError>(())
    });
    let report = replayer.run().await.unwrap();
    assert!(report.dry_run);
    assert_eq!((report.matched, report.scanned, report.would_replay, report.skipped.over_limit), (25, 20, 20, 5));
    adds_up(&report);
    assert!(handled.lock().unwrap().is_empty());
    assert_eq!(bench.store.count(Filter::parked()).await.unwrap(), 25);
    assert_eq!(bench.row("job 0").await.fence, 0);
    assert!(!report.is_complete());
    let text = report.to_string();
    assert_eq!(text, "dry run: 20 of 25 matching would be replayed, 0 not due, 5 skipped (5 over the limit)");
}

// B1.8: the one longest unseen first; each success recovered with its time, each failure parked.
#[tokio::test]
async fn a_real_run_recovers_and_leaves_failures_parked() {
    let bench = Bench::new();
    bench.park_jobs(25);
    let handled = log();
    let seen = Arc::clone(&handled);
    let replayer = bench.replayer().execute().on("fetch", move |job| {
        let seen = Arc::clone(&seen);
        async move {
            assert_eq!(job.payload::<String>()?, job.job_id);
            seen.lock().unwrap().push(job.job_id.clone());
            if job.job_id.ends_with('3') { Err(ReplayError::failed(permanent())) } else { Ok(()) }
        }
    });
    let report = replayer.run().await.unwrap();
    let jobs: Vec<_> = (0..20).map(|n| format!("job {n}")).collect();
    assert_eq!(*handled.lock().unwrap(), jobs);
    assert_eq!((report.recovered, report.still_failing, report.skipped.over_limit), (18, 2, 5));
    assert_eq!((report.scanned, report.matched, report.dry_run), (20, 25, false));
    adds_up(&report);
    let recovered = bench.row("job 0").await;
    assert_eq!((recovered.state, recovered.closed_at), (LetterState::Recovered, Some(start() + seconds(1_000))));
    let failing = bench.row("job 13").await;
    assert_eq!((failing.state, failing.error_class.as_str(), failing.attempts), (LetterState::Parked, "permanent", 3));
    let text = report.to_string();
    let wanted = "20 of 25 matching: 18 recovered, 2 still failing, 0 abandoned, 0 gone, 0 not due, 5 skipped (5 over the limit)";
    assert_eq!(text, wanted);
}

// D12: one pass; a letter that fails again is not met a second time, though the clock stands still.
#[tokio::test]
async fn each_letter_is_replayed_once_in_a_run() {
    let bench = Bench::new();
    // A failing letter moves to the present, where the last one stands: not behind it, since its number is lower.
    for n in 0..249 {
        bench.park(letter("fetch", &format!("job {n}"), start() - seconds(1)));
    }
    bench.park(letter("fetch", "the last one", start()));
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let replayer = bench.replayer().execute().no_limit().on("fetch", move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Err::<(), _>(ReplayError::failed(permanent())) }
    });
    let report = replayer.run().await.unwrap();
    assert_eq!((report.still_failing, report.matched), (250, 250));
    assert_eq!(runs.load(Ordering::SeqCst), 250);
    adds_up(&report);
}

// D12: a permanent failure stays until its replays are used up; an abandoned letter does not match any more.
#[tokio::test]
async fn five_failed_replays_abandon() {
    let bench = Bench::new();
    bench.park_jobs(1);
    let replayer = bench.replayer().execute().on("fetch", |_| async { Err::<(), _>(ReplayError::failed(permanent())) });
    for replay in 1..=MAX_REPLAYS {
        bench.time.advance(seconds(1));
        let report = replayer.run().await.unwrap();
        let abandoned = u64::from(replay == MAX_REPLAYS);
        assert_eq!((report.abandoned, report.still_failing), (abandoned, 1 - abandoned));
        adds_up(&report);
    }
    assert_eq!(replayer.run().await.unwrap().matched, 0);
}

// D12: blocked kinds, letters not due, and what gone means.
#[tokio::test]
async fn what_is_passed_over_is_counted_by_why() {
    let bench = Bench::new();
    bench.park_jobs(2);
    bench.park(letter("store", "other", start()));
    let due = start() + seconds(86_400 * 365 * 50);
    let mut waiting = letter("fetch", "waiting", start());
    waiting.not_before = Some(due);
    bench.park(waiting);
    let mut broken = letter("fetch", "broken", start());
    broken.payload = Payload::Unserializable("key must be a string".into());
    bench.park(broken);
    let mut gone = permanent();
    gone.code = Some(404);
    let replayer = bench.replayer().execute().on("fetch", move |job| {
        let gone = gone.clone();
        async move { if job.job_id == "job 1" { Err(ReplayError::gone(gone)) } else { Ok(()) } }
    });
    let report = replayer.run().await.unwrap();
    assert_eq!((report.recovered, report.gone, report.not_due, report.first_due), (1, 1, 1, Some(due)));
    assert_eq!((report.skipped.blocked, report.skipped.without_payload, report.matched), (1, 1, 5));
    assert_eq!(report.blocked_kinds.get("store"), Some(&1));
    adds_up(&report);
    assert_eq!(bench.row("job 1").await.error_class, "gone:404");
    assert_eq!(bench.row("broken").await.replays, 0);
    let text = report.to_string();
    assert!(text.contains("1 not due (first at 2075-12-21T03:04:05Z)"), "{text}");
    assert!(text.contains("no handler for `store` 1"), "{text}");
    // The dry run says the same.
    let dry = bench.replayer().on_blocking("fetch", |_| Ok::<_, ReplayError>(())).run().await.unwrap();
    assert_eq!((dry.not_due, dry.skipped.blocked), (1, 1));
    // Forced, the hint does not hold.
    let forced = bench.replayer().execute().force().on_blocking("fetch", |_| Ok::<_, ReplayError>(()));
    assert_eq!(forced.run().await.unwrap().recovered, 1);
}

// D12: letters passed over leave the limit to others.
#[tokio::test]
async fn the_limit_counts_what_is_replayed() {
    let bench = Bench::new();
    for n in 0..30 {
        bench.park(letter("store", &format!("blocked {n}"), start() - seconds(100)));
    }
    bench.park_jobs(3);
    let replayer = bench.replayer().execute().limit(2).on_blocking("fetch", |_| Ok::<_, ReplayError>(()));
    let report = replayer.run().await.unwrap();
    assert_eq!((report.recovered, report.skipped.blocked, report.skipped.over_limit), (2, 30, 1));
    adds_up(&report);
}

// D13: a handler that could not be started gives the replay back; `stop` ends the run.
#[tokio::test]
async fn a_handler_that_did_not_start_counts_nothing() {
    let bench = Bench::new();
    bench.park_jobs(3);
    let before = bench.row("job 1").await;
    let replayer = bench.replayer().execute().on_blocking("fetch", |job| match job.job_id.as_str() {
        "job 0" => Ok(()),
        "job 1" => Err(ReplayError::not_started("no such command")),
        _ => Err(ReplayError::stop("connection refused")),
    });
    let report = replayer.run().await.unwrap();
    assert_eq!((report.recovered, report.skipped.not_started), (1, 2));
    assert_eq!(report.stopped.as_deref(), Some("connection refused"));
    adds_up(&report);
    let after = bench.row("job 1").await;
    assert_eq!(
        (after.state, after.replays, after.crashes, after.attempts),
        (LetterState::Parked, 0, 0, before.attempts)
    );
    assert_eq!(after.last_seen, before.last_seen);
}

#[tokio::test]
async fn a_stopped_run_says_what_it_did_not_reach() {
    let bench = Bench::new();
    bench.park_jobs(5);
    let replayer = bench.replayer().execute();
    let stopper = replayer.stopper();
    let replayer = replayer.on_blocking("fetch", move |job| {
        if job.job_id == "job 1" {
            stopper.stop();
        }
        Ok::<_, ReplayError>(())
    });
    let report = replayer.run().await.unwrap();
    assert_eq!((report.recovered, report.skipped.not_reached), (2, 3));
    adds_up(&report);
}

// A panic in a handler is the letter's failure.
#[tokio::test]
async fn a_panicking_handler_is_a_failed_replay() {
    let bench = Bench::new();
    bench.park_jobs(2);
    let replayer = bench.replayer().execute().on("fetch", |job| async move {
        assert_ne!(job.job_id, "job 0", "on purpose");
        Ok::<_, ReplayError>(())
    });
    let report = replayer.run().await.unwrap();
    assert_eq!((report.recovered, report.still_failing), (1, 1));
    let row = bench.row("job 0").await;
    assert_eq!(row.reason, StopReason::Panicked);
    assert!(row.error_message.contains("on purpose"), "{}", row.error_message);
}

#[derive(Debug)]
struct Refused(u16);

impl Classify for Refused {
    fn classify(&self) -> Verdict {
        match self.0 {
            404 => Verdict::gone("missing").code(404),
            code => Verdict::retryable("rate_limit").code(code.into()).retry_after(seconds(3_600)),
        }
    }

    fn describe(&self) -> Option<String> {
        Some(format!("refused with {}", self.0))
    }
}

// A classified error goes through `?`: its verdict decides.
#[tokio::test]
async fn a_classified_error_is_what_it_says() {
    let bench = Bench::new();
    bench.park_jobs(2);
    let replayer = bench.replayer().execute().on("fetch", |job| async move {
        let code = if job.payload::<String>()? == "job 0" { 404 } else { 429 };
        Err::<(), _>(Refused(code))?;
        Ok::<_, ReplayError>(())
    });
    let report = replayer.run().await.unwrap();
    assert_eq!((report.gone, report.still_failing), (1, 1));
    let row = bench.row("job 1").await;
    assert_eq!((row.error_class.as_str(), row.error_message.as_str()), ("exhausted:429", "refused with 429"));
    assert!(row.error_type.ends_with("Refused") && row.not_before.is_some());
}

// D20: without a dead letter of its own, the function's report counts its body runs.
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn a_call_that_gave_up_goes_through_the_question_mark() {
    use retry_runtime::{GaveUp, Policy, Retry};

    async fn call(code: u16) -> Result<(), GaveUp<Refused>> {
        Retry::new(Policy::new().max_retries(2)).run_reporting(|| async { Err(Refused(code)) }).await
    }
    let bench = Bench::new();
    bench.park_jobs(2);
    let replayer = bench.replayer().execute().on("fetch", |job| async move {
        let code = if job.payload::<String>()? == "job 0" { 404 } else { 429 };
        call(code).await?;
        Ok::<_, ReplayError>(())
    });
    let report = replayer.run().await.unwrap();
    assert_eq!((report.gone, report.still_failing), (1, 1));
    let row = bench.row("job 1").await;
    assert_eq!(row.error_class, "hint_too_long:429");
    assert_eq!((row.attempts, row.not_before.is_some()), (3, true));
    let detail = bench.store.get(row.letter_id).await.unwrap().unwrap();
    assert_eq!(detail.history.last().map(|entry| entry.message.as_str()), Some("refused with 429"));
}

// D4, D20: the annotated function's own dead letter inside the handler is the replay's result, not another letter.
#[tokio::test]
async fn the_handlers_own_dead_letter_reports_to_the_replay() {
    let bench = Bench::new();
    bench.park_jobs(1);
    let store = Arc::clone(&bench.store);
    let replayer = bench.replayer().execute().on("fetch", move |job| {
        let store = Arc::clone(&store);
        async move {
            tokio::task::yield_now().await;
            let mut again = letter("fetch", &job.job_id, start() + seconds(2_000));
            again.attempts = 3;
            again.code = Some(503);
            again.history = vec![AttemptRecord::new(1, start(), seconds(1), "unavailable", Some(503), "busy")];
            assert!(matches!(hand_over(&store, again).await, Parking::Replaying));
            let other = letter("fetch", "another job", start());
            assert!(matches!(hand_over(&store, other).await, Parking::Parked { .. }));
            Err::<(), _>(ReplayError::failed(permanent()))
        }
    });
    let report = replayer.run().await.unwrap();
    assert_eq!((report.still_failing, report.matched), (1, 1));
    let row = bench.row("job 0").await;
    assert_eq!(
        (row.error_class.as_str(), row.attempts, row.parkings, row.failed_again),
        ("exhausted:503", 5, 1, false)
    );
    let detail = bench.store.get(row.letter_id).await.unwrap().unwrap();
    assert_eq!(detail.history.last().map(|entry| (entry.fence, entry.code)), Some((Some(1), Some(503))));
    assert_eq!(bench.store.count(Filter::all()).await.unwrap(), 2);
}

// D4, 5.7: a call inside that gave the job up decides, also when it returned `Ok` with a rejected value.
#[tokio::test]
async fn a_job_given_up_inside_is_not_recovered() {
    for (reason, recovered) in [(StopReason::Exhausted, 0), (StopReason::Dropped, 1)] {
        let bench = Bench::new();
        bench.park_jobs(1);
        let store = Arc::clone(&bench.store);
        let replayer = bench.replayer().execute().on_blocking("fetch", move |job| {
            let mut again = letter("fetch", &job.job_id, start() + seconds(2_000));
            again.reason = reason;
            drop(hand_over(&store, again));
            Ok::<_, ReplayError>(())
        });
        let report = replayer.run().await.unwrap();
        assert_eq!((report.recovered, report.still_failing), (recovered, 1 - recovered), "{reason}");
    }
}

// B1.8: a run that is dropped half-way keeps what it reported, and gives back what it was at.
#[tokio::test]
async fn a_dropped_run_keeps_its_results_and_gives_its_letter_back() {
    let bench = Bench::new();
    bench.park_jobs(3);
    let replayer = bench.replayer().execute().on("fetch", |job| async move {
        if job.job_id == "job 1" {
            std::future::pending::<()>().await;
        }
        Ok::<_, ReplayError>(())
    });
    {
        let mut run = std::pin::pin!(replayer.run());
        let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(run.as_mut().poll(cx))).await;
        assert!(poll.is_pending());
        assert_eq!(bench.row("job 1").await.state, LetterState::Replaying);
    }
    assert_eq!(bench.row("job 0").await.state, LetterState::Recovered);
    let given_back = bench.row("job 1").await;
    assert_eq!((given_back.state, given_back.replays, given_back.crashes), (LetterState::Parked, 0, 0));
}

// D11
#[tokio::test]
async fn the_key_stays_and_the_fence_rises() {
    let bench = Bench::new();
    bench.park_jobs(1);
    let keys = log();
    let fences = Arc::new(Mutex::new(Vec::new()));
    let (seen, raised) = (Arc::clone(&keys), Arc::clone(&fences));
    let replayer = bench.replayer().execute().on_blocking("fetch", move |job| {
        seen.lock().unwrap().push(job.idempotency_key);
        raised.lock().unwrap().push(job.fence);
        Err::<(), _>(ReplayError::failed(permanent()))
    });
    for _ in 0..2 {
        replayer.run().await.unwrap();
        bench.time.advance(seconds(1));
    }
    let keys = keys.lock().unwrap();
    assert_eq!(keys[0], keys[1]);
    assert_eq!(*fences.lock().unwrap(), [1, 2]);
}

#[test]
fn a_blocking_program_needs_no_runtime() {
    let bench = Bench::new();
    bench.park_jobs(3);
    let replayer = bench.replayer().execute().on_blocking("fetch", |_| Ok::<_, ReplayError>(()));
    assert!(replayer.run_blocking().unwrap().is_complete());
}

/// A store that leaves heartbeats to the replayer, and can lose leases.
struct NoHeartbeats {
    inner: Arc<MemoryStore>,
    extended: Arc<(Mutex<u32>, Condvar)>,
    loses: bool,
}

impl Faults for NoHeartbeats {
    type Inner = MemoryStore;
    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn claim(&self, request: ClaimRequest, actor: Actor) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        assert!(!request.keep_alive);
        self.inner.claim(request, actor)
    }

    fn extend(&self, letter_id: String, fence: u64, lease: Duration) -> BoxFuture<'_, Result<SystemTime, StoreError>> {
        *self.extended.0.lock().unwrap() += 1;
        self.extended.1.notify_all();
        if self.loses {
            return Box::pin(async { Err(StoreError::new(StoreErrorKind::StaleLease, "gone")) });
        }
        self.inner.extend(letter_id, fence, lease)
    }
}

fn extended_at_least(extended: &(Mutex<u32>, Condvar), n: u32) {
    let count = extended.0.lock().unwrap();
    let (_count, waited) = extended.1.wait_timeout_while(count, seconds(30), |count| *count < n).unwrap();
    assert!(!waited.timed_out(), "the lease was not extended");
}

// A handler whose error is only a text.
#[test]
fn a_text_is_a_failure_or_a_final_answer() {
    let bench = Bench::new();
    bench.park_jobs(2);
    let replayer = bench.replayer().execute().on_blocking("fetch", |job| {
        let full = "the mailbox is full".to_owned();
        Err::<(), _>(if job.job_id == "job 0" { ReplayError::failed(full) } else { ReplayError::gone("moved away") })
    });
    let report = replayer.run_blocking().unwrap();
    assert_eq!((report.still_failing, report.gone), (1, 1), "{report}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let failed = runtime.block_on(bench.row("job 0"));
    let shown = (failed.error_class.as_str(), failed.error_message.as_str(), failed.disposition);
    assert_eq!(shown, ("unknown", "the mailbox is full", Disposition::Unknown));
    let gone = runtime.block_on(bench.row("job 1"));
    assert_eq!((gone.error_class.as_str(), gone.disposition), ("gone", Disposition::Gone));
}

// S1: a result that comes too late is no success.
#[tokio::test]
async fn a_result_after_a_forced_release_is_late() {
    let bench = Bench::new();
    bench.park_jobs(1);
    let store = Arc::clone(&bench.store);
    let replayer = bench.replayer().execute().on("fetch", move |job| {
        let store = Arc::clone(&store);
        async move {
            store.release(job.letter_id, Release::Forced, Actor::new("operator", "stuck")).await.unwrap();
            Ok::<_, ReplayError>(())
        }
    });
    let report = replayer.run().await.unwrap();
    assert_eq!((report.skipped.late, report.recovered), (1, 0), "{report}");
    adds_up(&report);
    assert_eq!(bench.row("job 0").await.state, LetterState::Parked);
}

// D15: a handler that blocks its thread keeps its lease.
#[test]
fn a_blocking_handler_keeps_its_lease() {
    let bench = Bench::new();
    bench.park_jobs(1);
    let extended = Arc::new((Mutex::new(0), Condvar::new()));
    let store =
        Planted(NoHeartbeats { inner: Arc::clone(&bench.store), extended: Arc::clone(&extended), loses: false });
    let replayer = Replayer::new(store).execute().lease(Duration::from_millis(30)).on_blocking("fetch", move |_| {
        extended_at_least(&extended, 3);
        Ok::<_, ReplayError>(())
    });
    assert_eq!(replayer.run_blocking().unwrap().recovered, 1);
}

// S4: when the lease is lost the handler is cancelled, and nothing is written.
#[test]
fn a_lost_lease_cancels_the_handler() {
    let bench = Bench::new();
    bench.park_jobs(1);
    let extended = Arc::new((Mutex::new(0), Condvar::new()));
    let store = Planted(NoHeartbeats { inner: Arc::clone(&bench.store), extended, loses: true });
    let replayer = Replayer::new(store)
        .execute()
        .lease(Duration::from_millis(30))
        .on("fetch", |_| std::future::pending::<Result<(), ReplayError>>());
    let report = replayer.run_blocking().unwrap();
    assert_eq!((report.skipped.late, report.recovered), (1, 0));
    adds_up(&report);
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Recovers,
    Fails,
    Gone,
    NotStarted,
    Blocked,
    NotDue,
    Broken,
    Panics,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // D12: whatever happens to the letters, the report adds up, and each letter is where the report says.
    #[test]
    fn the_report_always_adds_up(
        fates in proptest::collection::vec(
            prop_oneof![
                Just(Fate::Recovers), Just(Fate::Fails), Just(Fate::Gone), Just(Fate::NotStarted),
                Just(Fate::Blocked), Just(Fate::NotDue), Just(Fate::Broken), Just(Fate::Panics),
            ],
            0..40,
        ),
        limit in proptest::option::of(0..30_u64),
        moves in any::<bool>(),
    ) {
        let bench = Bench::new();
        for (n, fate) in fates.iter().enumerate() {
            let kind = if matches!(fate, Fate::Blocked) { "store" } else { "fetch" };
            let mut letter = letter(kind, &n.to_string(), start());
            match fate {
                Fate::NotDue => letter.not_before = Some(start() + seconds(86_400 * 36_500)),
                Fate::Broken => letter.payload = Payload::Unserializable("why".into()),
                _ => {}
            }
            bench.park(letter);
        }
        let (time, of_handler) = (bench.time.clone(), fates.clone());
        let replayer = bench.replayer().execute().on_blocking("fetch", move |job| {
            if moves {
                time.advance(seconds(1));
            }
            match of_handler[job.job_id.parse::<usize>().unwrap()] {
                Fate::Fails => Err(ReplayError::failed(permanent())),
                Fate::Gone => Err(ReplayError::gone(permanent())),
                Fate::NotStarted => Err(ReplayError::not_started("no")),
                Fate::Panics => panic!("on purpose"),
                _ => Ok(()),
            }
        });
        let replayer = match limit {
            Some(limit) => replayer.limit(limit),
            None => replayer.no_limit(),
        };
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let report = replayer.run_blocking().unwrap();
        std::panic::set_hook(hook);
        adds_up(&report);
        prop_assert_eq!(report.matched, fates.len() as u64);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let by_state = |state| runtime.block_on(bench.store.count(by_state(state))).unwrap();
        prop_assert_eq!(by_state(LetterState::Recovered), report.recovered);
        prop_assert_eq!(by_state(LetterState::Discarded), report.gone);
        prop_assert_eq!(by_state(LetterState::Replaying), 0);
        if limit.is_none() {
            let count = |wanted: fn(&Fate) -> bool| fates.iter().filter(|fate| wanted(fate)).count() as u64;
            prop_assert_eq!(report.recovered, count(|fate| matches!(fate, Fate::Recovers)));
            prop_assert_eq!(report.still_failing, count(|fate| matches!(fate, Fate::Fails | Fate::Panics)));
            prop_assert_eq!(report.not_due, count(|fate| matches!(fate, Fate::NotDue)));
            prop_assert_eq!(report.skipped.total(), count(|fate| matches!(fate, Fate::NotStarted | Fate::Blocked | Fate::Broken)));
        }
    }
}

fn by_state(state: LetterState) -> Filter {
    let mut filter = Filter::all();
    filter.states.push(state);
    filter
}
