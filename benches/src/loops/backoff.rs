//! backoff. It counts time and not attempts, so its user counts these.

use std::future::Ready;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use ::backoff::future::{Retry, Sleeper};
use ::backoff::{Error, ExponentialBackoff, ExponentialBackoffBuilder};

use super::{Contender, Failure, Outcome, RETRIES, SECOND, Work, at_once, now, on_tokio};

pub(super) const CONTENDER: Contender = Contender {
    name: "backoff",
    on_tokio: Some(on_tokio!(on_tokio)),
    ready: Some(|work| now(ready(work))),
    blocking: Some(blocking),
};

fn waits(first: Duration) -> ExponentialBackoff {
    ExponentialBackoffBuilder::new()
        .with_initial_interval(first)
        .with_randomization_factor(0.0)
        .with_multiplier(2.0)
        .with_max_elapsed_time(None)
        .build()
}

/// What an outcome is to backoff.
fn judged(outcome: Outcome, retries: &mut u32) -> Result<u32, Error<Failure>> {
    outcome.map_err(|error| {
        if *retries == RETRIES || !error.may_pass() {
            return Error::permanent(error);
        }
        *retries += 1;
        Error::transient(error)
    })
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
fn last(error: Error<Failure>) -> Failure {
    match error {
        Error::Permanent(error) | Error::Transient { err: error, .. } => error,
    }
}

/// Its waits are over at once.
struct AtOnce;

impl Sleeper for AtOnce {
    type Sleep = Ready<()>;

    fn sleep(&self, wait: Duration) -> Ready<()> {
        at_once(wait)
    }
}

async fn on_tokio(work: &Work) -> Outcome {
    let retries = AtomicU32::new(0);
    ::backoff::future::retry(waits(SECOND), || counted(work, &retries)).await
}

async fn ready(work: &Work) -> Outcome {
    let retries = AtomicU32::new(0);
    Retry::new(AtOnce, waits(SECOND), |_, _| {}, || counted(work, &retries)).await
}

async fn counted(work: &Work, retries: &AtomicU32) -> Result<u32, Error<Failure>> {
    let mut so_far = retries.load(Relaxed);
    let outcome = judged(work.call().await, &mut so_far);
    retries.store(so_far, Relaxed);
    outcome
}

fn blocking(work: &Work) -> Outcome {
    let mut retries = 0;
    ::backoff::retry(waits(Duration::ZERO), || judged(work.attempt(), &mut retries)).map_err(last)
}
