//! B2, retry utilities for an agent framework, on tokio's paused clock; and the example that prints them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // a helper of a test fails as a test does

use std::sync::Mutex;
use std::time::Duration;

use helpers::{Outcome, example, run};
use retry_runtime::{Classify, Policy, Retry, RetryContext, Verdict, retry};
use tokio::time::Instant;

mod helpers;

/// The classes of B2.3; everything unlisted is permanent.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Classify)]
#[classify(default = permanent)]
enum StepError {
    #[error("rate limited, call {0}")]
    #[classify(retryable)]
    RateLimit(usize),
    #[error("timed out")]
    #[classify(retryable)]
    Timeout,
    #[error("no connection")]
    #[classify(retryable)]
    Connection,
    #[error("nonsense")]
    #[classify(retryable)]
    InvalidOutput,
    #[error("unexpected")]
    Unexpected,
    #[error("sandbox")]
    Sandbox,
    #[error("patch")]
    PatchApply,
}

use StepError::{Connection, InvalidOutput, PatchApply, RateLimit, Sandbox, Timeout, Unexpected};

/// A step that fails by script and notes when it was called.
struct Step {
    script: Vec<StepError>,
    calls: Mutex<Vec<Instant>>,
}

impl Step {
    fn new(script: impl Into<Vec<StepError>>) -> Self {
        Self { script: script.into(), calls: Mutex::default() }
    }

    fn call(&self) -> Result<&'static str, StepError> {
        let mut calls = self.calls.lock().unwrap();
        calls.push(Instant::now());
        self.script.get(calls.len() - 1).cloned().map_or(Ok("done"), Err)
    }

    fn attempts(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    /// The seconds between one call and the next.
    fn waits(&self) -> Vec<f64> {
        let calls = self.calls.lock().unwrap();
        calls.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64().round()).collect()
    }
}

#[retry]
async fn plain(step: &Step) -> Result<&'static str, StepError> {
    step.call()
}

#[retry(base_delay = "3s", max_retries = 4)]
async fn slower(step: &Step) -> Result<&'static str, StepError> {
    step.call()
}

#[retry(retry_on(PatchApply))]
async fn stubborn(step: &Step) -> Result<&'static str, StepError> {
    step.call()
}

fn fails(_: &StepError) -> Verdict {
    panic!("the classifier's own fault")
}

#[retry(classify = fails)]
async fn misjudged(step: &Step) -> Result<&'static str, StepError> {
    step.call()
}

#[retry(context = context)]
async fn recorded(context: &mut RetryContext, step: &Step) -> Result<&'static str, StepError> {
    step.call()
}

fn busy() -> Vec<StepError> {
    (1..=9).map(RateLimit).collect()
}

// B2.1
#[tokio::test(start_paused = true)]
async fn three_attempts_one_and_two_seconds_apart() {
    let step = Step::new(busy());
    assert_eq!(plain(&step).await, Err(RateLimit(3)));
    assert_eq!((step.attempts(), step.waits()), (3, vec![1.0, 2.0]));
    let step = Step::new(busy());
    assert_eq!(slower(&step).await, Err(RateLimit(5)));
    assert_eq!(step.waits(), [3.0, 6.0, 12.0, 24.0]);
}

// B2.2
#[tokio::test(start_paused = true)]
async fn waits_only_between_attempts() {
    let start = Instant::now();
    let step = Step::new([]);
    assert_eq!((plain(&step).await, start.elapsed()), (Ok("done"), Duration::ZERO));

    let step = Step::new([Timeout]);
    assert_eq!((plain(&step).await, step.waits()), (Ok("done"), vec![1.0]));

    let start = Instant::now();
    let step = Step::new([Timeout, Connection, RateLimit(7)]);
    assert_eq!(plain(&step).await, Err(RateLimit(7)));
    assert_eq!(step.waits(), [1.0, 2.0]);
    // Nothing is waited for after the last attempt.
    assert!((3.0..3.1).contains(&start.elapsed().as_secs_f64()));
}

// B2.3
#[tokio::test(start_paused = true)]
async fn four_classes_are_retryable_and_no_other() {
    for (error, class, attempts) in [
        (RateLimit(0), "rate_limit", 3),
        (Timeout, "timeout", 3),
        (Connection, "connection", 3),
        (InvalidOutput, "invalid_output", 3),
        (Unexpected, "unexpected", 1),
        (Sandbox, "sandbox", 1),
        (PatchApply, "patch_apply", 1),
    ] {
        assert_eq!(error.classify().class, class);
        let step = Step::new(vec![error.clone(); 9]);
        assert_eq!(plain(&step).await, Err(error));
        assert_eq!(step.attempts(), attempts, "{class}");
    }
}

// B2.4
#[tokio::test(start_paused = true)]
async fn retry_on_is_asked_before_the_classifier() {
    let step = Step::new(vec![PatchApply; 9]);
    assert_eq!((stubborn(&step).await, step.attempts()), (Err(PatchApply), 3));
    let step = Step::new(vec![Sandbox; 9]);
    assert_eq!((stubborn(&step).await, step.attempts()), (Err(Sandbox), 1));
}

// B2.5
#[tokio::test(start_paused = true)]
async fn a_failing_classifier_stops_and_the_original_error_comes_back() {
    let step = Step::new(busy());
    assert_eq!((misjudged(&step).await, step.attempts()), (Err(RateLimit(1)), 1));
}

// B2.6
#[tokio::test(start_paused = true)]
async fn a_context_tells_of_every_failed_attempt() {
    let mut context = RetryContext::new();
    assert_eq!(recorded(&mut context, &Step::new([Timeout, RateLimit(2)])).await, Ok("done"));
    let map = context.to_map();
    assert_eq!(map.keys().collect::<Vec<_>>(), ["error_summary", "last_error_class", "retry_count"]);
    assert_eq!((map["retry_count"].as_u64(), map["last_error_class"].as_str()), (Some(2), Some("rate_limit")));
    let summary = map["error_summary"].as_array().unwrap();
    assert_eq!(summary.len(), 2);
    assert!(summary[0].as_str().unwrap().contains("timed out") && summary[1].as_str().unwrap().contains("call 2"));

    // Used again, it starts anew: a first success has retry count 0.
    assert_eq!(recorded(&mut context, &Step::new([])).await, Ok("done"));
    assert_eq!((context.retry_count(), context.last_error_class(), context.error_summary().len()), (0, None, 0));

    assert_eq!(recorded(&mut context, &Step::new(busy())).await, Err(RateLimit(3)));
    assert_eq!((context.retry_count(), context.error_summary().len()), (2, 3));
}

// B2.7
#[tokio::test(start_paused = true)]
async fn the_engine_around_a_closure_does_the_same() {
    let (annotated, called) = (Step::new(busy()), Step::new(busy()));
    let result = Retry::new(Policy::new()).run(|| async { called.call() }).await;
    assert_eq!(result, plain(&annotated).await);
    assert_eq!(called.waits(), annotated.waits());
}

/// The example asserts what it prints; each behaviour has its line.
#[tokio::test]
async fn the_example_prints_every_behaviour() -> Outcome {
    let run = run(&mut example("retry_utils")).await?;
    assert!(run.status.success(), "{run:?}");
    for n in 1..=7 {
        assert!(run.stdout.lines().any(|line| line.starts_with(&format!("B2.{n} "))), "B2.{n}: {run:?}");
    }
    assert!(run.stdout.contains("B2.1 defaults: 3 attempts, waits of [1, 2] s"), "{run:?}");
    // B2.5: said aloud, once.
    assert_eq!(run.stderr.matches("classifier_failed").count(), 1, "{run:?}");
    Ok(())
}
