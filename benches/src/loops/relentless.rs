//! relentless.

use std::future::Ready;
use std::time::Duration;

use ::relentless::clock::TokioClock;
use ::relentless::{AsyncClock, Clock, RetryError, predicate, retry, retry_async, stop, wait};

use super::{Contender, Failure, Outcome, SECOND, Work, at_once, now, on_tokio};

pub(super) const CONTENDER: Contender = Contender {
    name: "relentless",
    on_tokio: Some(on_tokio!(on_tokio)),
    ready: Some(|work| now(ready(work))),
    blocking: Some(blocking),
};

/// Its waits are over at once.
struct AtOnce;

impl Clock for AtOnce {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

impl AsyncClock for AtOnce {
    type Wait = Ready<()>;

    fn wait_async(&self, wait: Duration) -> Ready<()> {
        at_once(wait)
    }
}

async fn on_tokio(work: &Work) -> Outcome {
    retry_async(|_| work.call())
        .when(predicate::error(Failure::may_pass))
        .wait(wait::exponential(SECOND))
        .stop(stop::attempts(3))
        .clock(TokioClock::new())
        .call()
        .await
        .map_err(last)
}

async fn ready(work: &Work) -> Outcome {
    retry_async(|_| work.call())
        .when(predicate::error(Failure::may_pass))
        .wait(wait::exponential(SECOND))
        .stop(stop::attempts(3))
        .clock(AtOnce)
        .call()
        .await
        .map_err(last)
}

fn blocking(work: &Work) -> Outcome {
    retry(|_| work.attempt())
        .when(predicate::error(Failure::may_pass))
        .wait(wait::exponential(Duration::ZERO))
        .stop(stop::attempts(3))
        .call()
        .map_err(last)
}

fn last(error: RetryError<Failure, Outcome>) -> Failure {
    match error {
        RetryError::Aborted { last } | RetryError::Exhausted { last: Err(last) } => last,
        other => panic!("a success is final: {other:?}"),
    }
}
