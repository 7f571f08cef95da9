//! Retry utilities for an agent framework: what is promised, and what was observed when this program ran.
//!
//! Nothing waits here: the waits are written down by a sleeper of our own. Each line is asserted before it is printed.

use std::cell::RefCell;
use std::time::Duration;

use retry_runtime::{Classify, Policy, Retry, RetryContext, retry};

/// What an agent's step may fail with. Everything unlisted stops at once.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Classify)]
#[classify(default = permanent)]
enum StepError {
    #[error("rate limited in call {0}")]
    #[classify(retryable)]
    RateLimit(u32),
    #[error("timed out")]
    #[classify(retryable)]
    Timeout,
    #[error("no connection")]
    #[classify(retryable)]
    Connection,
    #[error("the model's answer makes no sense")]
    #[classify(retryable)]
    InvalidOutput,
    #[error("unexpected")]
    Unexpected,
    #[error("the sandbox failed")]
    Sandbox,
    #[error("the patch does not apply")]
    PatchApply,
}

use StepError::{Connection, InvalidOutput, PatchApply, RateLimit, Sandbox, Timeout, Unexpected};

thread_local! {
    static WAITS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The sleeper of this program: it writes down the seconds and returns at once.
async fn note(wait: Duration) {
    WAITS.with_borrow_mut(|waits| waits.push(wait.as_secs()));
}

fn waited() -> Vec<u64> {
    WAITS.take()
}

/// The default: `max_retries = 2, base_delay = "1s"`, exponential.
#[retry(sleep = note)]
async fn step(calls: &mut u32, script: &[StepError]) -> Result<&'static str, StepError> {
    play(calls, script)
}

#[retry(sleep = note, retry_on(PatchApply))]
async fn stubborn(calls: &mut u32, script: &[StepError]) -> Result<&'static str, StepError> {
    play(calls, script)
}

#[retry(sleep = note, context = context)]
async fn recorded(
    context: &mut RetryContext,
    calls: &mut u32,
    script: &[StepError],
) -> Result<&'static str, StepError> {
    play(calls, script)
}

#[allow(clippy::panic)] // it is what B2.5 is about
fn broken(_: &StepError) -> retry_runtime::Verdict {
    panic!("the classifier has a bug")
}

#[retry(sleep = note, classify = broken)]
async fn misjudged(calls: &mut u32, script: &[StepError]) -> Result<&'static str, StepError> {
    play(calls, script)
}

/// Fails as the script says, then succeeds.
fn play(calls: &mut u32, script: &[StepError]) -> Result<&'static str, StepError> {
    let failure = script.get(*calls as usize).cloned();
    *calls += 1;
    failure.map_or(Ok("done"), Err)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let busy = [RateLimit(1), RateLimit(2), RateLimit(3), RateLimit(4)];

    let mut calls = 0;
    let result = step(&mut calls, &busy).await;
    let waits = waited();
    assert_eq!((calls, waits.as_slice(), result), (3, [1, 2].as_slice(), Err(RateLimit(3))));
    println!("B2.1 defaults: {calls} attempts, waits of {waits:?} s");
    println!("B2.2 all failed: {calls} attempts, {} waits, the last error came back: {}", waits.len(), RateLimit(3));

    for (script, expected) in [(&busy[..0], (1, 0)), (&busy[..1], (2, 1))] {
        let mut calls = 0;
        let result = step(&mut calls, script).await;
        let waits = waited();
        assert_eq!((result, calls, waits.len()), (Ok("done"), expected.0, expected.1));
        println!("B2.2 success in attempt {calls}: {} waits {waits:?}", waits.len());
    }

    for error in [RateLimit(1), Timeout, Connection, InvalidOutput, Unexpected, Sandbox, PatchApply] {
        let mut calls = 0;
        let result = step(&mut calls, &vec![error.clone(); 9]).await;
        let class = error.classify().class;
        let retried = matches!(class, "rate_limit" | "timeout" | "connection" | "invalid_output");
        assert_eq!((calls, waited().len()), if retried { (3, 2) } else { (1, 0) });
        assert_eq!(result, Err(error));
        println!("B2.3 {class}: {calls} attempts");
    }

    let mut calls = 0;
    assert_eq!(stubborn(&mut calls, &vec![PatchApply; 9]).await, Err(PatchApply));
    assert_eq!((calls, waited().len()), (3, 2));
    println!("B2.4 retry_on(PatchApply): {calls} attempts of what the classifier calls permanent");

    std::panic::set_hook(Box::new(|panic| eprintln!("(a panic, caught: {panic})")));
    let mut calls = 0;
    let result = misjudged(&mut calls, &busy).await;
    assert_eq!((calls, &result), (1, &Err(RateLimit(1))));
    println!("B2.5 a classifier that panics: {calls} attempt, and the original error: {result:?}");

    let mut context = RetryContext::new();
    assert_eq!(recorded(&mut context, &mut 0, &[Timeout, RateLimit(2)]).await, Ok("done"));
    assert_eq!((context.retry_count(), context.last_error_class()), (2, Some("rate_limit")));
    assert_eq!(context.error_summary().len(), 2);
    println!("B2.6 after a success in attempt 3: {}", serde_json::json!(context.to_map()));
    assert_eq!(recorded(&mut context, &mut 0, &[]).await, Ok("done"));
    assert_eq!((context.retry_count(), context.last_error_class()), (0, None));
    println!("B2.6 after a success in attempt 1: {}", serde_json::json!(context.to_map()));
    waited();

    let mut calls = 0;
    let result = Retry::new(Policy::new())
        .run_with(note, || {
            let outcome = play(&mut calls, &busy);
            async { outcome }
        })
        .await;
    let waits = waited();
    assert_eq!((calls, waits.as_slice(), &result), (3, [1, 2].as_slice(), &Err(RateLimit(3))));
    println!("B2.7 the same engine around a closure: {calls} attempts, waits of {waits:?} s, {result:?}");
}
