//! Which endings leave a letter, and what stands in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    DeadLetter, DeadLetterSink, DeadLetterStore, Filter, MemoryStore, PageRequest, Parking, ReplayJob, Replayer, Ticket,
};
use retry_runtime::ledger::{AttemptLedger, LedgerKey};
use retry_runtime::reply::{Answer, Reply};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{Disposition, GaveUp, StopReason, Verdict, retry};

/// A failure that is what its verdict says.
#[derive(Clone, Debug)]
struct Failed(Verdict);

fn verdict(failed: &Failed) -> Verdict {
    assert!(failed.0.class != "broken", "a classifier at its end");
    failed.0
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

#[retry(name = "job", classify = verdict, max_retries = 1, deadline = limit, dead_letter(sink = dlq))]
fn job(dlq: &Kept, limit: Duration, outcome: Result<(), Verdict>) -> Result<(), GaveUp<Failed>> {
    outcome.map_err(Failed)
}

const SLOW: Verdict = Verdict::retryable("slow").code(504);

// 11.1, 4.1: every ending but success, gone and a refusal by the ledger
#[test]
fn every_ending_that_owes_something_is_parked() {
    let (hour, second) = (Duration::from_secs(3600), Duration::from_secs(1));
    for (outcome, limit, reason) in [
        (Ok(()), hour, None),
        (Err(Verdict::gone("gone").code(410)), hour, None),
        (Err(Verdict::permanent("denied").code(403)), hour, Some(StopReason::Permanent)),
        (Err(Verdict::unknown("odd")), hour, Some(StopReason::Unknown)),
        (Err(SLOW), hour, Some(StopReason::Exhausted)),
        (Err(SLOW), second, Some(StopReason::Deadline)),
        (Err(SLOW.retry_after(hour)), hour, Some(StopReason::HintTooLong)),
        (Err(SLOW.retry_after(second)), hour, Some(StopReason::Exhausted)),
        (Err(Verdict::retryable("broken")), hour, Some(StopReason::ClassifierFailed)),
    ] {
        let (dlq, _waits) = (Kept::default(), VirtualWaits::start());
        let gave_up = job(&dlq, limit, outcome).err();
        let parking = gave_up.as_ref().and_then(GaveUp::parking);
        assert_eq!(parking.is_some(), reason.is_some(), "what is parked is reported: {outcome:?}");
        let letters = dlq.0.into_inner().unwrap();
        assert_eq!(letters.iter().map(|letter| letter.reason).collect::<Vec<_>>(), Vec::from_iter(reason));
        let (Some(letter), Err(verdict)) = (letters.first(), outcome) else { continue };
        // only a hint that was not waited for keeps the letter back
        assert_eq!(letter.not_before.is_some(), reason == Some(StopReason::HintTooLong), "{letter:?}");
        if reason == Some(StopReason::ClassifierFailed) {
            // no verdict, no class: the reason alone
            assert_eq!((letter.disposition, letter.error_class()), (Disposition::Unknown, "classifier_failed".into()));
        } else {
            let shown = (letter.disposition, letter.class.as_deref(), letter.code);
            assert_eq!(shown, (verdict.disposition, Some(verdict.class), verdict.code));
        }
    }
}

// B1.6: first seen and last seen
#[test]
fn a_letter_tells_when_the_first_attempt_failed() {
    let (dlq, _waits) = (Kept::default(), VirtualWaits::start());
    assert!(job(&dlq, Duration::from_secs(3600), Err(SLOW)).is_err());
    let letter = dlq.0.into_inner().unwrap().remove(0);
    let between = letter.failed_at.duration_since(letter.first_failed_at).unwrap();
    assert!(between >= Duration::from_secs(1), "a wait of a second lies between: {between:?}");
    assert_eq!((letter.attempts, letter.disposition), (2, Disposition::Retryable));
}

/// A sink that answers when it is told to.
#[derive(Default)]
struct Slow(Mutex<Option<Answer<Parking>>>);

impl DeadLetterSink for Slow {
    fn submit(&self, _: DeadLetter) -> Ticket {
        let (answer, ticket) = Reply::pair(|| panic!("the call waits for the answer"));
        *self.0.lock().unwrap() = Some(answer);
        ticket
    }
}

// 11.2, D5: the call ends when its letter is parked, not before
#[tokio::test]
async fn a_call_waits_until_its_letter_is_parked() {
    #[retry(name = "waits", classify = verdict, dead_letter(sink = dlq))]
    async fn waits(dlq: &Slow) -> Result<(), Failed> {
        Err(Failed(Verdict::permanent("denied")))
    }
    let (dlq, ended) = (Slow::default(), Cell::new(false));
    let call = async {
        let outcome = waits(&dlq).await;
        ended.set(true);
        outcome
    };
    let answers = async {
        tokio::task::yield_now().await;
        let answer = dlq.0.lock().unwrap().take().expect("the letter was handed over");
        assert!(!ended.get(), "the call ended before its letter was parked");
        answer.send(Parking::Parked { letter_id: "L".into() });
    };
    let (outcome, ()) = tokio::join!(call, answers);
    assert!(outcome.is_err());
}

// 4.1: a hint that no calendar reaches is not "at any time"
#[test]
fn a_hint_beyond_the_calendar_holds_the_letter_back() {
    let (dlq, _waits) = (Kept::default(), VirtualWaits::start());
    assert!(job(&dlq, Duration::from_secs(3600), Err(SLOW.retry_after(Duration::MAX))).is_err());
    let letter = dlq.0.into_inner().unwrap().remove(0);
    let year = Duration::from_secs(365 * 86_400);
    assert!(letter.not_before.is_some_and(|at| at > letter.failed_at + 50 * year), "{:?}", letter.not_before);
}

const HOUR: Duration = Duration::from_secs(3600);

// 4.1, 9.2: what a server asked for holds though a second route failed since, for the letter, the ledger and a replay
#[tokio::test(start_paused = true)]
async fn a_hint_outlives_a_second_route_that_fails() {
    #[retry(name = "hinted", classify = verdict, fallback = Err(Failed(Verdict::permanent("denied"))), dead_letter(sink = store, job_id = 7), ledger(store = store, key = 7))]
    async fn hinted(store: &MemoryStore) -> Result<(), GaveUp<Failed>> {
        Err(Failed(SLOW.retry_after(HOUR)))
    }
    let store = Arc::new(MemoryStore::new());
    let held_back = |at: Option<SystemTime>| {
        let left = at.unwrap().duration_since(SystemTime::now()).unwrap();
        assert!(left + Duration::from_secs(60) > HOUR && left <= HOUR, "{left:?}");
    };
    let gave_up = hinted(&store).await.unwrap_err();
    assert_eq!(gave_up.reason(), StopReason::HintTooLong);
    let row = || async { store.list(Filter::all(), PageRequest::default()).await.unwrap().rows.remove(0) };
    held_back(row().await.not_before);
    held_back(store.entry(LedgerKey::new("hinted", "7")).await.unwrap().unwrap().next_at);

    let store = Arc::new(MemoryStore::new());
    let mut letter = DeadLetter::new("hinted", StopReason::Exhausted, SystemTime::now());
    letter.job_id = Some("7".into());
    drop(store.submit(letter));
    let of_replay = Arc::clone(&store);
    let replayer = Replayer::new(Arc::clone(&store)).on("hinted", move |_: ReplayJob| {
        let store = of_replay.clone();
        async move { hinted(&store).await }
    });
    let report = replayer.execute().run().await.unwrap();
    assert_eq!(report.still_failing, 1, "{report}");
    held_back(store.list(Filter::all(), PageRequest::default()).await.unwrap().rows[0].not_before);
}

/// A sink with a fault.
struct Broken;

impl DeadLetterSink for Broken {
    fn submit(&self, _: DeadLetter) -> Ticket {
        panic!("a sink at its end")
    }
}

// 11.2: the caller's error is returned unchanged whatever happens to the letter, and the loss is counted
#[tokio::test]
async fn a_sink_that_panics_changes_no_error() {
    #[retry(name = "blocking", classify = verdict, dead_letter(sink = Broken, job_id = 7))]
    fn blocking() -> Result<(), GaveUp<Failed>> {
        Err(Failed(Verdict::permanent("denied").code(403)))
    }
    #[retry(name = "async", classify = verdict, dead_letter(sink = Broken, job_id = 7))]
    async fn asynchronous() -> Result<(), GaveUp<Failed>> {
        Err(Failed(Verdict::permanent("denied").code(403)))
    }
    let before = retry_runtime::dead_letter::lost();
    for outcome in [blocking(), asynchronous().await] {
        let gave_up = outcome.unwrap_err();
        assert_eq!(gave_up.reason(), StopReason::Permanent);
        assert!(matches!(gave_up.parking(), Some(Parking::Lost { .. })), "{:?}", gave_up.parking());
    }
    assert_eq!(retry_runtime::dead_letter::lost() - before, 2);
}
