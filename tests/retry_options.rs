//! Every option of `#[retry]`, async and blocking, on a paused clock or virtual waits.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a helper of a test fails as a test does
#![allow(clippy::unused_self, clippy::unused_async, clippy::cast_possible_truncation)] // forms of functions, small numbers

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink, Parking, Payload, Ticket};
use retry_runtime::reply::Reply;
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{
    Backoff, Classify, Elapsed, GaveUp, Jitter, Policy, Retry, RetryContext, StopReason, Verdict, retry, retrying,
};
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy {0}")]
    #[classify(retryable)]
    Busy(u32),
    #[error("slow down")]
    #[classify(retryable, class = "rate_limit", retry_after = after)]
    Limited { after: Option<Duration> },
    #[error("denied")]
    #[classify(permanent)]
    Denied,
    #[error("no such thing")]
    #[classify(gone)]
    Gone,
    #[error("who knows")]
    #[classify(unknown)]
    Odd,
    #[error("{0}")]
    #[classify(retryable, class = "timeout")]
    Timeout(#[from] Elapsed),
}

/// A sink that keeps what it gets.
#[derive(Default)]
struct Kept(std::sync::Mutex<Vec<DeadLetter>>);

impl Kept {
    fn only(&self) -> DeadLetter {
        let letters = self.0.lock().unwrap();
        assert_eq!(letters.len(), 1, "{letters:?}");
        letters[0].clone()
    }
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl DeadLetterSink for Kept {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        let letter_id = letter.park_id.to_string();
        self.0.lock().unwrap().push(letter);
        Reply::ready(Parking::Parked { letter_id })
    }
}

fn next(calls: &AtomicU32) -> u32 {
    calls.fetch_add(1, SeqCst) + 1
}

// B2.1, B2.2, 1.1
#[tokio::test(start_paused = true)]
async fn defaults_are_three_attempts_and_waits_of_one_and_two_seconds() {
    #[retry]
    async fn f(calls: &AtomicU32) -> Result<u32, E> {
        Err(E::Busy(next(calls)))
    }
    let (calls, start) = (AtomicU32::new(0), Instant::now());
    assert_eq!(f(&calls).await, Err(E::Busy(3)));
    assert_eq!((calls.load(SeqCst), start.elapsed()), (3, Duration::from_secs(3)));
}

#[test]
fn the_blocking_twin_waits_the_same() {
    #[retry]
    fn f(calls: &AtomicU32) -> Result<u32, E> {
        Err(E::Busy(next(calls)))
    }
    let (calls, waits) = (AtomicU32::new(0), VirtualWaits::start());
    assert_eq!(f(&calls), Err(E::Busy(3)));
    assert_eq!(calls.load(SeqCst), 3);
    assert_eq!(waits.recorded(), [Duration::from_secs(1), Duration::from_secs(2)]);
}

#[test]
fn every_growth_and_every_wait_key() {
    #[retry(max_retries = 4, base_delay = "1s", max_delay = "5s", backoff = fibonacci)]
    fn fibonacci() -> Result<(), E> {
        Err(E::Busy(0))
    }
    #[retry(max_retries = 3, base_delay = "1s", backoff = linear)]
    fn linear() -> Result<(), E> {
        Err(E::Busy(0))
    }
    #[retry(max_retries = 2, base_delay = "7s", backoff = fixed)]
    fn fixed() -> Result<(), E> {
        Err(E::Busy(0))
    }
    #[retry(max_retries = 2, base_delay = "2s", backoff = exponential(1.5))]
    fn exponential() -> Result<(), E> {
        Err(E::Busy(0))
    }
    fn squares(n: u32) -> Duration {
        Duration::from_secs(u64::from((n + 1) * (n + 1)))
    }
    #[retry(max_retries = 3, backoff = squares)]
    fn custom() -> Result<(), E> {
        Err(E::Busy(0))
    }
    fn computed(retries: u32, base: Duration) -> Result<(), E> {
        #[retry(max_retries = retries, base_delay = base * 2)]
        fn inner(retries: u32, base: Duration) -> Result<(), E> {
            Err(E::Busy(0))
        }
        inner(retries, base)
    }
    let seconds = |run: fn() -> Result<(), E>| {
        let waits = VirtualWaits::start();
        assert_eq!(run(), Err(E::Busy(0)));
        waits.recorded().iter().map(Duration::as_secs_f64).collect::<Vec<_>>()
    };
    assert_eq!(seconds(fibonacci), [1.0, 1.0, 2.0, 3.0]);
    assert_eq!(seconds(linear), [1.0, 2.0, 3.0]);
    assert_eq!(seconds(fixed), [7.0, 7.0]);
    assert_eq!(seconds(exponential), [2.0, 3.0]);
    assert_eq!(seconds(custom), [1.0, 4.0, 9.0]);
    assert_eq!(seconds(|| computed(1, Duration::from_secs(3))), [6.0]);
}

// 2.2, B1.5
#[test]
fn additive_jitter_stays_inside_the_cap() {
    #[retry(max_retries = 9, base_delay = "2s", max_delay = "31s", jitter = "1s")]
    fn f() -> Result<(), E> {
        Err(E::Busy(0))
    }
    let waits = VirtualWaits::start();
    assert!(f().is_err());
    let low = [2, 4, 8, 16, 30, 30, 30, 30, 30].map(Duration::from_secs);
    for (wait, low) in waits.recorded().iter().zip(low) {
        assert!(*wait >= low && *wait <= low + Duration::from_secs(1), "{wait:?} after {low:?}");
    }
}

#[test]
fn a_policy_instead_of_the_keys() {
    static POLICY: Policy = Policy::new().max_retries(1).base_delay(Duration::from_secs(9)).backoff(Backoff::Fixed);
    #[retry(policy = &POLICY)]
    fn by_static() -> Result<(), E> {
        Err(E::Busy(0))
    }
    struct Client {
        policy: Policy,
    }
    impl Client {
        #[retry(policy = self.policy)]
        fn by_field(&self) -> Result<(), E> {
            Err(E::Busy(0))
        }
        #[retry(policy = Policy::new().max_retries(1).jitter(Jitter::None))]
        fn by_value(&self) -> Result<(), E> {
            Err(E::Busy(0))
        }
    }
    let client = Client { policy: POLICY };
    let waits = VirtualWaits::start();
    assert!(by_static().is_err() && client.by_field().is_err() && client.by_value().is_err());
    assert_eq!(waits.recorded(), [9, 9, 1].map(Duration::from_secs));
}

// B2.3, B2.4, 5.1
#[tokio::test(start_paused = true)]
async fn patterns_are_asked_before_the_verdict_counts() {
    use E::Odd;
    #[retry(max_retries = 1, stop_on(E::Busy(n) if *n > 1), retry_on(E::Denied | Odd))]
    async fn f(calls: &AtomicU32, error: E) -> Result<(), E> {
        next(calls);
        Err(error.clone())
    }
    for (error, attempts) in
        [(E::Busy(2), 1), (E::Busy(1), 2), (E::Denied, 2), (Odd, 2), (E::Gone, 1), (E::Limited { after: None }, 2)]
    {
        let calls = AtomicU32::new(0);
        assert_eq!(f(&calls, error.clone()).await, Err(error.clone()));
        assert_eq!(calls.load(SeqCst), attempts, "{error}");
    }
}

// 5.1: `stop_on` is asked first, wherever it is written
#[test]
fn an_error_of_both_lists_is_not_retried() {
    #[retry(retry_on(_), stop_on(E::Busy(1)))]
    fn f(calls: &AtomicU32, n: u32) -> Result<(), E> {
        next(calls);
        Err(E::Busy(n))
    }
    let (calls, _waits) = (AtomicU32::new(0), VirtualWaits::start());
    assert!(f(&calls, 1).is_err());
    assert_eq!(calls.swap(0, SeqCst), 1);
    assert!(f(&calls, 2).is_err());
    assert_eq!(calls.load(SeqCst), 3);
}

// 5.1: a pattern replaces the disposition alone; class, code and hint are the classifier's
#[test]
fn the_classifier_is_asked_where_a_pattern_decides() {
    fn classify(_: &E) -> Verdict {
        Verdict::retryable("asked").code(7).retry_after(Duration::from_secs(5))
    }
    #[retry(context = ctx, classify = classify, max_retries = 1, stop_on(E::Busy(1)), retry_on(E::Busy(2)))]
    fn f(ctx: &mut RetryContext, n: u32) -> Result<(), E> {
        Err(E::Busy(n))
    }
    let (waits, mut ctx) = (VirtualWaits::start(), RetryContext::new());
    for (n, reason, waited) in [(1, StopReason::Permanent, 0), (2, StopReason::Exhausted, 1)] {
        assert!(f(&mut ctx, n).is_err());
        let last = ctx.history().last().unwrap();
        assert_eq!((ctx.stop_reason(), &*last.class, last.code), (Some(reason), "asked", Some(7)));
        assert_eq!(waits.recorded(), vec![Duration::from_secs(5); waited]);
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_failures_stop_unless_told_to_retry() {
    #[retry(max_retries = 1)]
    async fn stops(calls: &AtomicU32) -> Result<(), E> {
        next(calls);
        Err(E::Odd)
    }
    #[retry(max_retries = 1, unknown = retry)]
    async fn retries(calls: &AtomicU32) -> Result<(), E> {
        next(calls);
        Err(E::Odd)
    }
    let calls = AtomicU32::new(0);
    assert_eq!(stops(&calls).await, Err(E::Odd));
    assert_eq!(calls.swap(0, SeqCst), 1);
    assert_eq!(retries(&calls).await, Err(E::Odd));
    assert_eq!(calls.load(SeqCst), 2);
}

// 5.7
#[tokio::test(start_paused = true)]
async fn a_rejected_value_is_retried_returned_and_parked() {
    #[retry(max_retries = 2, retry_ok(None), name = "poll", dead_letter(sink = dlq))]
    async fn f(dlq: &Kept, calls: &AtomicU32) -> Result<Option<u32>, E> {
        Ok((next(calls) > 5).then_some(1))
    }
    let (dlq, calls) = (Kept::default(), AtomicU32::new(0));
    assert_eq!(f(&dlq, &calls).await, Ok(None));
    assert_eq!(calls.load(SeqCst), 3);
    assert_eq!(dlq.only().error_class(), "exhausted:rejected_value");
    assert_eq!(f(&dlq, &calls).await, Ok(Some(1)));
    assert_eq!((calls.load(SeqCst), dlq.count()), (6, 1));
}

// 3.1, 3.2
#[tokio::test(start_paused = true)]
async fn a_deadline_counts_run_time_and_is_never_slept_past() {
    #[retry(max_retries = 9, deadline = "5s")]
    async fn f(calls: &AtomicU32) -> Result<(), GaveUp<E>> {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        Err(E::Busy(next(calls)))
    }
    let (calls, start) = (AtomicU32::new(0), Instant::now());
    let gave_up = f(&calls).await.unwrap_err();
    // 1.5 + 1 + 1.5 = 4.0, and the next wait of 2 s would pass 5 s
    assert_eq!((calls.load(SeqCst), start.elapsed()), (2, Duration::from_secs(4)));
    assert_eq!(gave_up.reason(), StopReason::Deadline);
    assert_eq!(gave_up.last(), Some(&E::Busy(2)));
    let text = gave_up.to_string();
    assert_eq!(
        text,
        "gave up after 2 attempts in 4.0s: deadline 5s would pass during a wait of 2s; last error: busy 2"
    );
}

// 3.3
#[tokio::test(start_paused = true)]
async fn an_attempt_timeout_is_a_retryable_timeout() {
    #[retry(max_retries = 1, attempt_timeout = "2s")]
    async fn f(calls: &AtomicU32) -> Result<u32, E> {
        if next(calls) == 1 {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        Ok(7)
    }
    #[retry(max_retries = 1, attempt_timeout = "2s")]
    async fn always() -> Result<u32, E> {
        std::future::pending().await
    }
    // the last attempt that the count allows: cut by the deadline, it ends with that all the same
    #[retry(max_retries = 1, attempt_timeout = "4s", deadline = "6s")]
    async fn cut() -> Result<u32, GaveUp<E>> {
        std::future::pending().await
    }
    let (calls, start) = (AtomicU32::new(0), Instant::now());
    assert_eq!(f(&calls).await, Ok(7));
    assert_eq!((calls.load(SeqCst), start.elapsed()), (2, Duration::from_secs(3)));
    assert!(matches!(always().await, Err(E::Timeout(_))));
    let start = Instant::now();
    let gave_up = cut().await.unwrap_err();
    // 4 s, a wait of 1 s, and the second attempt is cut at the deadline
    assert_eq!((gave_up.attempts(), start.elapsed().as_secs()), (2, 6));
    assert_eq!((gave_up.reason(), gave_up.last()), (StopReason::Deadline, None));
    assert!(gave_up.to_string().contains("deadline 6s passed during an attempt"), "{gave_up}");
}

// 3.3: an attempt that is ready in the moment its time is up is not thrown away
#[tokio::test(start_paused = true)]
async fn an_attempt_that_ends_with_its_limit_counts() {
    #[retry(max_retries = 0, attempt_timeout = "2s")]
    async fn f() -> Result<u32, E> {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(7)
    }
    assert_eq!(f().await, Ok(7));
}

// 4.1
#[tokio::test(start_paused = true)]
async fn a_hint_is_waited_for_and_a_long_one_stops() {
    #[retry(max_retries = 1, max_retry_after = "90s", name = "hinted", dead_letter(sink = dlq, job_id = after.as_secs()))]
    async fn f(dlq: &Kept, after: Duration) -> Result<(), E> {
        Err(E::Limited { after: Some(after) })
    }
    let dlq = Kept::default();
    let start = Instant::now();
    assert!(f(&dlq, Duration::from_secs(80)).await.is_err());
    assert_eq!(start.elapsed(), Duration::from_secs(80));
    assert_eq!(dlq.only().error_class(), "exhausted:rate_limit");
    let dlq = Kept::default();
    let start = Instant::now();
    assert!(f(&dlq, Duration::from_secs(100)).await.is_err());
    assert_eq!(start.elapsed(), Duration::ZERO);
    let letter = dlq.only();
    assert_eq!(letter.reason, StopReason::HintTooLong);
    let ahead = letter.not_before.unwrap().duration_since(letter.failed_at).unwrap();
    assert_eq!(ahead, Duration::from_secs(100));
}

// B2.5, 5.3
#[tokio::test(start_paused = true)]
async fn a_panicking_classifier_returns_the_original_error() {
    fn broken(_: &E) -> Verdict {
        panic!("the classifier is broken")
    }
    #[retry(classify = broken)]
    async fn f(calls: &AtomicU32) -> Result<(), E> {
        Err(E::Busy(next(calls)))
    }
    #[retry(classify = broken)]
    fn g(calls: &AtomicU32) -> Result<(), GaveUp<E>> {
        Err(E::Busy(next(calls)))
    }
    let calls = AtomicU32::new(0);
    assert_eq!(f(&calls).await, Err(E::Busy(1)));
    let gave_up = g(&calls).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.last()), (StopReason::ClassifierFailed, Some(&E::Busy(2))));
}

// 11.2, 5.6: nor does a text that cannot be made change the outcome, or lose the letter
#[tokio::test(start_paused = true)]
async fn a_panicking_display_returns_the_original_error() {
    #[derive(Debug, PartialEq, Classify)]
    #[classify(permanent)]
    struct Mute;
    impl std::fmt::Display for Mute {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("no words")
        }
    }
    #[retry(name = "mute", dead_letter(sink = dlq))]
    async fn f(dlq: &Kept) -> Result<(), Mute> {
        Err(Mute)
    }
    let dlq = Kept::default();
    assert_eq!(f(&dlq).await, Err(Mute));
    assert!(dlq.only().error_message.contains("no words"), "{:?}", dlq.only());
}

#[test]
fn a_classifier_of_its_own_needs_no_trait() {
    struct Foreign(bool);
    fn classify(error: &Foreign) -> Verdict {
        if error.0 { Verdict::retryable("foreign") } else { Verdict::permanent("foreign") }
    }
    #[retry(classify = classify, max_retries = 4)]
    fn f(calls: &AtomicU32) -> Result<(), Foreign> {
        Err(Foreign(next(calls) < 3))
    }
    let (calls, _waits) = (AtomicU32::new(0), VirtualWaits::start());
    assert!(f(&calls).is_err());
    assert_eq!(calls.load(SeqCst), 3);
}

// B2.6
#[tokio::test(start_paused = true)]
async fn a_context_is_an_argument_or_a_new_name() {
    #[retry(context = ctx)]
    async fn passed(ctx: &mut RetryContext, fail: u32) -> Result<u32, E> {
        if ctx.attempts() <= fail { Err(E::Busy(ctx.attempts())) } else { Ok(ctx.retry_count()) }
    }
    #[retry(context = seen)]
    fn inner() -> Result<u32, E> {
        if seen.attempts() < 3 { Err(E::Busy(seen.attempts())) } else { Ok(seen.history().len() as u32) }
    }
    let mut ctx = RetryContext::new();
    assert_eq!(passed(&mut ctx, 0).await, Ok(0));
    assert_eq!((ctx.retry_count(), ctx.stop_reason()), (0, Some(StopReason::Succeeded)));
    assert_eq!(passed(&mut ctx, 2).await, Ok(2));
    assert_eq!((ctx.retry_count(), ctx.last_error_class(), ctx.history().len()), (2, Some("busy"), 2));
    assert_eq!(ctx.error_summary(), ["attempt 1: busy: busy 1", "attempt 2: busy: busy 2"]);
    assert_eq!(passed(&mut ctx, 9).await, Err(E::Busy(3)));
    assert_eq!(ctx.stop_reason(), Some(StopReason::Exhausted));
    assert_eq!(ctx.history()[0].wait, Some(Duration::from_secs(1)));
    assert_eq!(ctx.elapsed(), Duration::from_secs(3));
    let _waits = VirtualWaits::start();
    assert_eq!(inner(), Ok(2));
}

// 9.1, 9.2
#[tokio::test(start_paused = true)]
async fn the_fallback_runs_once_and_its_success_is_a_success() {
    #[retry(
        max_retries = 1,
        name = "routes",
        fallback = async { seen.set(seen.get() + 1); second.clone() }.await,
        dead_letter(sink = dlq, job_id = "j")
    )]
    async fn f(dlq: &Kept, seen: &Cell<u32>, first: E, second: Result<u32, E>) -> Result<u32, E> {
        Err(first.clone())
    }
    for (first, second, runs, outcome, letters) in [
        (E::Busy(1), Ok(4), 1, Ok(4), 0),
        (E::Denied, Ok(4), 1, Ok(4), 0),
        (E::Odd, Ok(4), 1, Ok(4), 0),
        (E::Limited { after: Some(Duration::from_secs(999)) }, Ok(4), 1, Ok(4), 0),
        (E::Gone, Ok(4), 0, Err(E::Gone), 0),
        (E::Busy(1), Err(E::Gone), 1, Err(E::Gone), 0),
        (E::Busy(1), Err(E::Denied), 1, Err(E::Denied), 1),
    ] {
        let (dlq, seen) = (Kept::default(), Cell::new(0));
        assert_eq!(f(&dlq, &seen, first, second).await, outcome);
        assert_eq!((seen.get(), dlq.count()), (runs, letters));
        if letters == 1 {
            let letter = dlq.only();
            assert_eq!((letter.error_class().as_str(), letter.attempts), ("exhausted:denied", 3));
            assert_eq!(letter.history.len(), 3);
        }
    }
}

// 9.1
#[test]
fn the_fallback_runs_also_after_a_deadline_and_a_failed_classifier() {
    fn broken(_: &E) -> Verdict {
        panic!("the classifier is broken")
    }
    #[retry(deadline = "1s", fallback = Ok(1))]
    fn late() -> Result<u32, E> {
        Err(E::Busy(0))
    }
    #[retry(classify = broken, fallback = Ok(2))]
    fn misjudged() -> Result<u32, E> {
        Err(E::Busy(0))
    }
    assert_eq!((late(), misjudged()), (Ok(1), Ok(2)));
}

#[test]
fn a_fallback_sees_the_error_by_value_and_its_question_mark_ends_it() {
    #[retry(max_retries = 0, fallback = rescue(error))]
    fn named() -> Result<u32, E> {
        Err(E::Busy(5))
    }
    fn rescue(error: E) -> Result<u32, E> {
        match error {
            E::Busy(n) => Ok(n * 10),
            other => Err(other),
        }
    }
    #[retry(max_retries = 0, fallback = { let n: u32 = Err(E::Denied)?; Ok(n) })]
    fn block() -> Result<u32, E> {
        Err(E::Busy(5))
    }
    #[retry(max_retries = 0, fallback = { assert_eq!(error.reason(), StopReason::Exhausted); Err(error.into_last().unwrap()) })]
    fn reported() -> Result<u32, GaveUp<E>> {
        Err(E::Busy(5))
    }
    assert_eq!(named(), Ok(50));
    assert_eq!(block(), Err(E::Denied));
    assert_eq!(reported().unwrap_err().last(), Some(&E::Busy(5)));
}

// B1.6, 11.5
#[tokio::test(start_paused = true)]
async fn a_letter_has_everything_and_a_bad_payload_does_not_lose_it() {
    #[derive(serde::Serialize)]
    struct Job {
        id: String,
        prompt: &'static str,
    }
    struct Broken;
    impl serde::Serialize for Broken {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("cannot be serialised")
        }
    }
    #[retry(max_retries = 1, dead_letter(sink = dlq, job_id = &job.id, payload = job, model = "m-1"))]
    async fn generate(dlq: &Kept, job: &Job) -> Result<(), E> {
        Err(E::Limited { after: None })
    }
    #[retry(max_retries = 0, name = "broken", dead_letter(sink = dlq, payload = Broken))]
    fn broken(dlq: &Kept) -> Result<(), E> {
        Err(E::Denied)
    }
    let dlq = Kept::default();
    assert!(generate(&dlq, &Job { id: "a1".into(), prompt: "hi" }).await.is_err());
    let letter = dlq.only();
    assert_eq!(letter.kind, "retry_options::generate");
    assert_eq!((letter.job_id.as_deref(), letter.model.as_deref()), (Some("a1"), Some("m-1")));
    assert_eq!(letter.payload, Payload::Json(r#"{"id":"a1","prompt":"hi"}"#.into()));
    assert_eq!((letter.error_class().as_str(), letter.error_message.as_str()), ("exhausted:rate_limit", "slow down"));
    assert_eq!((letter.attempts, letter.history.len()), (2, 2));
    assert!(letter.error_type.ends_with("::E"), "{}", letter.error_type);
    let dlq = Kept::default();
    assert_eq!(broken(&dlq), Err(E::Denied));
    assert!(matches!(dlq.only().payload, Payload::Unserializable(why) if why.contains("cannot be serialised")));
}

// 11.1: neither gone nor succeeded jobs leave letters
#[tokio::test(start_paused = true)]
async fn gone_and_success_park_nothing() {
    #[retry(dead_letter(sink = dlq))]
    async fn f(dlq: &Kept, outcome: Result<u32, E>) -> Result<u32, E> {
        outcome.clone()
    }
    let dlq = Kept::default();
    assert_eq!(f(&dlq, Ok(1)).await, Ok(1));
    assert_eq!(f(&dlq, Err(E::Gone)).await, Err(E::Gone));
    assert_eq!(dlq.count(), 0);
}

// 2.4
#[tokio::test(start_paused = true)]
async fn a_zero_wait_still_yields_once() {
    #[retry(max_retries = 3, base_delay = "0s")]
    async fn f(calls: &AtomicU32) -> Result<(), E> {
        Err(E::Busy(next(calls)))
    }
    async fn polls(future: impl Future<Output = Result<(), E>>) -> u32 {
        let (mut future, mut polls) = (std::pin::pin!(future), 0);
        std::future::poll_fn(|cx| {
            polls += 1;
            future.as_mut().poll(cx).map(drop)
        })
        .await;
        polls
    }
    let (calls, start) = (AtomicU32::new(0), Instant::now());
    assert_eq!((polls(f(&calls)).await, calls.load(SeqCst)), (4, 4));
    let policy = Policy::new().max_retries(3).base_delay(Duration::ZERO);
    let built = Retry::new(policy).run(|| async { Err(E::Busy(0)) });
    assert_eq!((polls(built).await, start.elapsed()), (4, Duration::ZERO));
}

// each option's expression: once per call, before the first attempt, however many attempts follow
#[test]
fn options_are_evaluated_once_in_the_order_written() {
    thread_local!(static ASKED: std::cell::RefCell<Vec<&'static str>> = const { std::cell::RefCell::new(Vec::new()) });
    fn asked<T>(name: &'static str, value: T) -> T {
        ASKED.with_borrow_mut(|asked| asked.push(name));
        value
    }
    #[retry(
        base_delay = asked("base_delay", Duration::from_secs(1)),
        max_retries = asked("max_retries", 3),
        deadline = asked("deadline", Duration::from_secs(60)),
        name = "once",
        dead_letter(sink = asked("sink", dlq), job_id = asked("job_id", 7), payload = asked("payload", [1]))
    )]
    fn f(dlq: &Kept) -> Result<(), E> {
        asked("body", Err(E::Busy(0)))
    }
    let (dlq, _waits) = (Kept::default(), VirtualWaits::start());
    assert!(f(&dlq).is_err());
    let asked = ASKED.take();
    assert_eq!(asked[..6], ["base_delay", "max_retries", "deadline", "sink", "job_id", "payload"]);
    assert_eq!(asked[6..], ["body"; 4]);
}

#[tokio::test(start_paused = true)]
async fn another_timer_can_be_named() {
    thread_local!(static SLEPT: Cell<Duration> = const { Cell::new(Duration::ZERO) });
    async fn sleep(wait: Duration) {
        SLEPT.set(SLEPT.get() + wait);
    }
    #[retry(sleep = sleep)]
    async fn f() -> Result<(), E> {
        Err(E::Busy(0))
    }
    assert!(f().await.is_err());
    assert_eq!(SLEPT.get(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn arguments_are_cloned_shared_or_fresh() {
    #[retry(clone(body, b), share(log, counter), max_retries = 2)]
    async fn f(
        calls: &AtomicU32,
        body: String,
        (a, mut b): (u32, Vec<u32>),
        mut offset: u32,
        mut log: Vec<u32>,
        mut counter: impl FnMut() -> u32,
    ) -> Result<(String, u32, usize, u32, usize, u32), E> {
        offset += 1;
        b.push(1);
        log.push(offset);
        let counted = counter();
        let body = body + "!";
        if next(calls) < 3 {
            return Err(E::Busy(0));
        }
        Ok((body, a, b.len(), offset, log.len(), counted))
    }
    let mut n = 0;
    let counter = || {
        n += 1;
        n
    };
    let calls = AtomicU32::new(0);
    let out = f(&calls, "x".into(), (4, vec![]), 10, vec![], counter).await;
    assert_eq!(out, Ok(("x!".into(), 4, 1, 11, 3, 3)));
}

#[test]
fn a_shared_self_carries_over() {
    struct Generator(u32);
    impl Generator {
        #[retry(share(self))]
        fn run(mut self) -> Result<u32, E> {
            self.0 += 1;
            if self.0 < 3 { Err(E::Busy(self.0)) } else { Ok(self.0) }
        }
    }
    let _waits = VirtualWaits::start();
    assert_eq!(Generator(0).run(), Ok(3));
}

#[tokio::test(start_paused = true)]
async fn retrying_is_the_same_loop_as_an_expression() {
    let mut calls = 0;
    let start = Instant::now();
    let out = retrying!(max_retries = 3, base_delay = "2s"; async -> Result<u32, E> {
        calls += 1;
        if calls < 3 {
            return Err(E::Busy(calls));
        }
        Ok(calls)
    });
    assert_eq!((out, start.elapsed()), (Ok(3), Duration::from_secs(6)));
    let mut ctx = RetryContext::new();
    let waits = VirtualWaits::start();
    let out = retrying!(max_retries = 1, context = ctx; -> Result<u32, E> {
        Err(E::Busy(calls))?;
        Ok(1)
    });
    assert_eq!(out, Err(E::Busy(3)));
    assert_eq!((ctx.attempts(), waits.recorded().len()), (2, 1));
}
