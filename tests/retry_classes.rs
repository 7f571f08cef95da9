//! `class(NAME, ..)`: other numbers for the failures of one class, through every face.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::cell::Cell;
use std::time::Duration;

use retry_runtime::testing::VirtualWaits;
use retry_runtime::{ClassLimits, Classify, GaveUp, Jitter, Policy, Retry, RetryContext, StopReason, retry, retrying};

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("slow down")]
    #[classify(retryable, class = "rate_limit", retry_after = 0)]
    Limited(Option<Duration>),
    #[error("too slow")]
    #[classify(retryable)]
    Timeout,
}

const LIMITED: E = E::Limited(None);

/// Errors in order, then success.
struct Script<'a>(&'a [E], Cell<usize>);

impl<'a> Script<'a> {
    const fn new(errors: &'a [E]) -> Self {
        Self(errors, Cell::new(0))
    }

    fn next(&self) -> Result<usize, E> {
        let at = self.1.replace(self.1.get() + 1);
        self.0.get(at).map_or(Ok(at + 1), |error| Err(*error))
    }
}

fn secs(waits: &VirtualWaits) -> Vec<u64> {
    waits.recorded().iter().map(Duration::as_secs).collect()
}

// a class is counted by itself, whatever failed before
#[test]
fn a_smaller_number_limits_the_class_alone() {
    #[retry(max_retries = 5, class(timeout, max_retries = 1))]
    fn f(script: &Script<'_>) -> Result<usize, GaveUp<E>> {
        script.next()
    }
    for (errors, attempts) in [
        (&[E::Timeout; 3][..], 2),
        (&[E::Busy, E::Busy, E::Timeout, E::Busy, E::Timeout, E::Busy], 5),
        (&[E::Busy, E::Timeout, E::Timeout], 3),
    ] {
        let _waits = VirtualWaits::start();
        let gave_up = f(&Script::new(errors)).unwrap_err();
        assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::Exhausted, attempts), "{errors:?}");
        let text = gave_up.to_string();
        assert!(text.contains("exhausted: max_retries 1 of class `timeout` used up; last error: too slow"), "{text}");
    }
    // 1.1: and all failures by the call's
    let _waits = VirtualWaits::start();
    let gave_up = f(&Script::new(&[E::Busy; 9])).unwrap_err();
    assert_eq!(gave_up.attempts(), 6);
    assert!(gave_up.to_string().contains("max_retries 5 used up"));
    let _waits = VirtualWaits::start();
    let mixed = [E::Busy, E::Busy, E::Busy, E::Busy, E::Busy, E::Timeout];
    assert_eq!(f(&Script::new(&mixed)).unwrap_err().attempts(), 6, "a class adds no attempt to a larger number");
}

// and a larger one holds for the class alone
#[test]
fn a_larger_number_holds_for_the_class_alone() {
    #[retry(max_retries = 2, class("rate_limit", max_retries = 4))]
    fn f(script: &Script<'_>) -> Result<usize, E> {
        script.next()
    }
    for (errors, end) in [
        (&[LIMITED; 4][..], Ok(5)),
        (&[LIMITED; 5], Err(LIMITED)),
        (&[E::Busy; 3], Err(E::Busy)),
        // 1.1: all attempts together stay within the largest number
        (&[E::Busy, E::Busy, LIMITED, LIMITED], Ok(5)),
        (&[E::Busy, E::Busy, LIMITED, LIMITED, LIMITED], Err(LIMITED)),
        (&[LIMITED, LIMITED, LIMITED, E::Busy], Err(E::Busy)),
    ] {
        let (_waits, script) = (VirtualWaits::start(), Script::new(errors));
        assert_eq!(f(&script), end, "{errors:?}");
        assert!(script.1.get() <= 5, "{errors:?}");
    }
}

#[test]
fn a_wait_of_its_own_grows_by_the_failures_of_the_class() {
    #[retry(max_retries = 9, class(rate_limit, base_delay = "10s", max_delay = "25s"), class(timeout, backoff = fixed))]
    fn f(script: &Script<'_>) -> Result<usize, E> {
        script.next()
    }
    let waits = VirtualWaits::start();
    let errors = [E::Busy, LIMITED, E::Busy, LIMITED, LIMITED, E::Timeout, E::Timeout, E::Busy];
    assert_eq!(f(&Script::new(&errors)), Ok(9));
    // the others' waits go on with all failures: the first, the third, the eighth
    assert_eq!(secs(&waits), [1, 10, 4, 20, 25, 1, 1, 60]);
}

#[test]
fn a_class_without_a_wait_of_its_own_keeps_the_calls() {
    #[retry(class(timeout, max_retries = 3))]
    fn f(script: &Script<'_>) -> Result<usize, E> {
        script.next()
    }
    let waits = VirtualWaits::start();
    assert_eq!(f(&Script::new(&[E::Timeout; 3])), Ok(4));
    assert_eq!(secs(&waits), [1, 2, 4]);
}

// 4.1
#[test]
fn the_longest_hint_may_differ() {
    #[retry(max_retry_after = "10s", class(rate_limit, max_retry_after = longest))]
    fn f(script: &Script<'_>, longest: Duration) -> Result<usize, GaveUp<E>> {
        script.next()
    }
    let hint = [E::Limited(Some(Duration::from_secs(50)))];
    let waits = VirtualWaits::start();
    assert_eq!(f(&Script::new(&hint), Duration::from_secs(60)).unwrap(), 2);
    assert_eq!(secs(&waits), [50]);
    assert_eq!(f(&Script::new(&hint), Duration::from_secs(40)).unwrap_err().reason(), StopReason::HintTooLong);
}

// 2.2: each class remembers its own wait
#[test]
fn decorrelated_waits_of_a_class_follow_its_own() {
    #[retry(max_retries = 9, base_delay = "50s", class(rate_limit, base_delay = "1ms", jitter = decorrelated))]
    fn f(script: &Script<'_>) -> Result<usize, E> {
        script.next()
    }
    let waits = VirtualWaits::start();
    assert_eq!(f(&Script::new(&[E::Busy, LIMITED, E::Busy, LIMITED])), Ok(5));
    let waits = waits.recorded();
    assert!(waits[1] <= Duration::from_millis(3) && waits[3] <= 3 * waits[1], "{waits:?}");
}

static POLICY: Policy = Policy::new().max_retries(1).base_delay(Duration::from_secs(3));

// computed numbers, beside a policy, in every face: the same waits
#[tokio::test(start_paused = true)]
async fn every_face_has_it() {
    #[retry(policy = &POLICY, context = context, class(rate_limit, max_retries = most, base_delay = first, backoff = thrice))]
    async fn attribute(
        context: &mut RetryContext,
        script: &Script<'_>,
        most: u32,
        first: Duration,
    ) -> Result<usize, E> {
        script.next()
    }
    #[retry(policy = POLICY, context = context, class(rate_limit, max_retries = most, base_delay = first, backoff = thrice))]
    fn blocking(context: &mut RetryContext, script: &Script<'_>, most: u32, first: Duration) -> Result<usize, E> {
        script.next()
    }
    fn thrice(retry: u32) -> Duration {
        Duration::from_secs(10) * 3_u32.pow(retry)
    }
    let errors = [LIMITED, LIMITED, E::Busy];
    let script = || Script::new(&errors);
    let (most, first) = (3, Duration::from_secs(10));
    let limits = ClassLimits::new().max_retries(most).base_delay(first).backoff(retry_runtime::Backoff::Custom(thrice));
    let mut seen = Vec::new();
    let mut context = RetryContext::new();
    let _waits = VirtualWaits::start();
    let mut see = |outcome, context: &RetryContext| {
        let waits: Vec<_> = context.history().iter().filter_map(|record| record.wait).collect();
        seen.push((outcome, waits, context.stop_reason()));
    };
    let outcome = attribute(&mut context, &script(), most, first).await;
    see(outcome, &context);
    let outcome = blocking(&mut context, &script(), most, first);
    see(outcome, &context);
    let script1 = script();
    let outcome = retrying!(policy = &POLICY, context = context, class(rate_limit, max_retries = most, base_delay = first, backoff = thrice); async -> Result<usize, E> {
        script1.next()
    });
    see(outcome, &context);
    let script2 = script();
    let retry = Retry::new(POLICY).class("rate_limit", limits).context(&mut context);
    let outcome = retry.run(|| async { script2.next() }).await;
    see(outcome, &context);
    let script3 = script();
    let outcome = Retry::new(POLICY).class("rate_limit", limits).context(&mut context).run_blocking(|| script3.next());
    see(outcome, &context);
    let waits = vec![Duration::from_secs(10), Duration::from_secs(30)];
    assert_eq!(seen, vec![(Err(E::Busy), waits, Some(StopReason::Exhausted)); 5]);
}

#[test]
fn the_limits_of_a_class_print_their_plan() {
    let limits = ClassLimits::new().max_retries(2).jitter(Jitter::Full);
    assert_eq!(limits.over(&POLICY).to_string(), "3 attempts; waits 0s..3s, 0s..6s; at most 9s in total");
    assert_eq!(ClassLimits::new().over(&POLICY), POLICY);
}

/// Fetches.
#[retry(max_retries = 2, class(rate_limit, max_retries = 4, base_delay = "10s"), class(timeout, max_retries = 0))]
fn documented() -> Result<usize, E> {
    Ok(1)
}

#[test]
fn a_documented_function_is_a_function() {
    assert_eq!(documented(), Ok(1));
}
