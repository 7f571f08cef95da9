//! Letters that come back to a replay: those whose replay died, and abandoned ones with a grant.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Filter, LetterRow, LetterState, MAX_CRASHES,
    MAX_REPLAYS, ManualClock, MemoryStore, Parking, Payload, ReplayError, ReplayReport, Replayer,
};

const LEASE: Duration = Duration::from_secs(60);

/// In the past of this machine's clock, which dry runs go by.
fn past() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

struct Bench {
    store: Arc<MemoryStore>,
    time: ManualClock,
}

impl Bench {
    fn at(start: SystemTime) -> Self {
        let time = ManualClock::new(start);
        Self { store: Arc::new(MemoryStore::with_clock(time.clock())), time }
    }

    fn park(&self, job: &str) -> String {
        let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, self.time.now());
        letter.job_id = Some(job.into());
        letter.payload = Payload::Json(format!("\"{job}\""));
        self.submit(letter)
    }

    fn submit(&self, letter: DeadLetter) -> String {
        match self.store.submit(letter).wait(Duration::from_secs(30)).unwrap() {
            Parking::Parked { letter_id } => letter_id,
            other => panic!("{other}"),
        }
    }

    async fn row(&self, letter_id: &str) -> LetterRow {
        self.store.get(letter_id.to_owned()).await.unwrap().unwrap().row
    }

    /// Takes a letter as a process does that dies then.
    async fn die_with(&self, letter_id: &str) {
        let mut request = ClaimRequest::new(["fetch"], "a process that died");
        request.filter = Filter::id(letter_id);
        request.lease = LEASE;
        request.ignore_backoff = true;
        assert_eq!(self.store.claim(request, Actor::new("test", "")).await.unwrap().len(), 1);
    }

    async fn crash(&self, letter_id: &str) {
        self.die_with(letter_id).await;
        self.time.advance(LEASE + Duration::from_secs(1));
    }

    fn succeeding(&self) -> Replayer {
        Replayer::new(Arc::clone(&self.store)).on_blocking("fetch", |_| Ok::<_, ReplayError>(()))
    }

    fn failing(&self) -> Replayer {
        Replayer::new(Arc::clone(&self.store)).on_blocking("fetch", |_| Err::<(), _>(ReplayError::failed("forbidden")))
    }

    async fn abandon(&self, letter_id: &str) {
        let replayer = self.failing().filter(Filter::id(letter_id)).execute();
        for _ in 0..MAX_REPLAYS {
            replayer.run().await.unwrap();
            self.time.advance(Duration::from_secs(1));
        }
        assert_eq!(self.row(letter_id).await.state, LetterState::Abandoned);
    }
}

fn adds_up(report: &ReplayReport) {
    let replayed = report.recovered + report.still_failing + report.abandoned + report.gone;
    let sum = replayed + report.not_due + report.would_replay + report.skipped.total();
    assert_eq!(sum, report.matched, "{report:?}");
}

// D15: a program that lives for one replay only frees what its predecessor left.
#[tokio::test]
async fn a_real_run_takes_back_leases_that_have_ended() {
    let bench = Bench::at(past());
    let id = bench.park("a");
    bench.die_with(&id).await;
    bench.time.advance(Duration::from_secs(59));
    let early = bench.succeeding().execute().run().await.unwrap();
    assert_eq!((early.matched, early.recovered, early.under_way), (0, 0, 1));
    assert_eq!(early.first_lease_end, Some(past() + LEASE));
    assert!(!early.is_complete(), "a letter is still owed");
    let text = early.to_string();
    assert!(text.ends_with("; 1 under way elsewhere (first lease until 2023-11-14T22:14:20Z)"), "{text}");

    bench.time.advance(Duration::from_secs(2));
    let report = bench.succeeding().execute().run().await.unwrap();
    assert_eq!((report.matched, report.recovered, report.under_way), (1, 1, 0));
    assert!(report.is_complete());
    adds_up(&report);
    let row = bench.row(&id).await;
    assert_eq!((row.state, row.crashes, row.replays), (LetterState::Recovered, 1, 1));
}

// D15: a dry run promises what the real one does, and changes nothing.
#[tokio::test]
async fn a_dry_run_counts_leases_that_have_ended() {
    let bench = Bench::at(past());
    for job in ["a", "b", "c"] {
        bench.park(job);
    }
    let dead = bench.park("dead");
    bench.die_with(&dead).await;
    let before = bench.row(&dead).await;
    let report = bench.succeeding().run().await.unwrap();
    assert_eq!((report.matched, report.would_replay, report.under_way), (4, 4, 0));
    adds_up(&report);
    assert_eq!(bench.row(&dead).await, before);
    let two = bench.succeeding().limit(2).run().await.unwrap();
    assert_eq!((two.matched, two.would_replay, two.skipped.over_limit), (4, 2, 2));
    let others = bench.succeeding().filter(Filter::id("another")).run().await.unwrap();
    assert_eq!((others.matched, others.under_way), (0, 0));

    let bench = Bench::at(SystemTime::now() + Duration::from_secs(86_400));
    let id = bench.park("a");
    bench.park("b");
    bench.die_with(&id).await;
    let report = bench.succeeding().run().await.unwrap();
    assert_eq!((report.matched, report.would_replay, report.under_way), (1, 1, 1));
    adds_up(&report);
}

// D13: the death that abandons is in the report, dry and real.
#[tokio::test]
async fn a_last_crash_is_reported_as_abandoned() {
    let bench = Bench::at(past());
    let id = bench.park("a");
    for _ in 0..MAX_CRASHES {
        bench.crash(&id).await;
    }
    for replayer in [bench.succeeding(), bench.succeeding().execute()] {
        let report = replayer.run().await.unwrap();
        assert_eq!((report.matched, report.abandoned, report.scanned), (1, 1, 0), "{report}");
        adds_up(&report);
    }
    assert_eq!(bench.row(&id).await.state, LetterState::Abandoned);
}

// S1, D12: the way back for letters that failed too often.
#[tokio::test]
async fn abandoned_letters_are_replayed_with_a_grant() {
    let bench = Bench::at(past());
    let id = bench.park("a");
    bench.abandon(&id).await;
    let without = bench.succeeding().execute().run().await.unwrap();
    assert_eq!((without.matched, without.recovered), (0, 0));

    let before = bench.row(&id).await;
    let dry = bench.succeeding().abandoned(2).run().await.unwrap();
    assert_eq!((dry.matched, dry.would_replay, dry.restored), (1, 1, 1));
    assert!(dry.to_string().ends_with("; 1 abandoned before"), "{dry}");
    adds_up(&dry);
    assert_eq!(bench.row(&id).await, before, "a dry run changes nothing");

    let replayer = bench.failing().abandoned(2).execute();
    let first = replayer.run().await.unwrap();
    assert_eq!((first.matched, first.still_failing, first.restored), (1, 1, 1), "{first}");
    let row = bench.row(&id).await;
    assert_eq!((row.state, row.replays, row.max_replays), (LetterState::Parked, MAX_REPLAYS + 1, MAX_REPLAYS + 2));
    let second = replayer.run().await.unwrap();
    assert_eq!((second.matched, second.abandoned, second.restored), (1, 1, 0), "{second}");
    adds_up(&second);

    let report = bench.succeeding().abandoned(1).execute().run().await.unwrap();
    assert_eq!((report.recovered, report.restored), (1, 1));
    assert!(report.is_complete());
    assert_eq!(bench.row(&id).await.state, LetterState::Recovered);
}

// D12: one run takes an abandoned letter once, also where it fails again and the clock stands still.
#[tokio::test]
async fn a_grant_is_given_once_in_a_run() {
    let bench = Bench::at(past());
    let ids = [bench.park("a"), bench.park("b")];
    for id in &ids {
        bench.abandon(id).await;
    }
    let report = bench.failing().abandoned(0).no_limit().execute().run().await.unwrap();
    assert_eq!((report.matched, report.abandoned, report.restored), (2, 2, 2), "{report}");
    for id in &ids {
        assert_eq!(bench.row(id).await.replays, MAX_REPLAYS + 1);
    }
}

// S1: a letter that died too often comes back too, in one step.
#[tokio::test]
async fn a_letter_abandoned_by_crashes_is_replayed_with_a_grant() {
    let bench = Bench::at(past());
    let id = bench.park("a");
    for _ in 0..MAX_CRASHES {
        bench.crash(&id).await;
    }
    let dry = bench.succeeding().abandoned(1).run().await.unwrap();
    assert_eq!((dry.matched, dry.would_replay, dry.restored, dry.abandoned), (1, 1, 1, 0));
    let report = bench.succeeding().abandoned(1).execute().run().await.unwrap();
    assert_eq!((report.matched, report.recovered, report.restored, report.abandoned), (1, 1, 1, 0));
    adds_up(&report);
    assert_eq!(bench.row(&id).await.crashes, MAX_CRASHES);
}

// S1: what cannot be replayed now stays abandoned.
#[tokio::test]
async fn a_grant_is_not_spent_on_what_cannot_run() {
    let bench = Bench::at(past());
    let id = bench.park("a");
    bench.abandon(&id).await;
    // A live failure only counts on, and brings a server's hint.
    let mut live = DeadLetter::new("fetch", StopReason::HintTooLong, bench.time.now());
    live.job_id = Some("a".into());
    live.not_before = Some(SystemTime::now() + Duration::from_secs(3_600));
    bench.submit(live);
    let before = bench.row(&id).await;
    assert_eq!(before.state, LetterState::Abandoned);
    let report = bench.succeeding().abandoned(1).execute().run().await.unwrap();
    assert_eq!((report.not_due, report.restored), (1, 0), "{report}");
    adds_up(&report);
    let blocked = Replayer::new(Arc::clone(&bench.store)).abandoned(1).execute().run().await.unwrap();
    assert_eq!((blocked.skipped.blocked, blocked.restored), (1, 0));
    assert_eq!(bench.row(&id).await, before);
    let forced = bench.succeeding().abandoned(1).force().execute().run().await.unwrap();
    assert_eq!((forced.recovered, forced.restored), (1, 1));
}
