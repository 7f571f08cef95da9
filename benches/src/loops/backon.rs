//! backon's builder.

use std::time::Duration;

use ::backon::{BlockingRetryable, ExponentialBuilder, Retryable};

use super::{Contender, Failure, Outcome, SECOND, Work, at_once, now, on_tokio};

pub(super) const CONTENDER: Contender = Contender {
    name: "backon",
    on_tokio: Some(on_tokio!(on_tokio)),
    ready: Some(|work| now(ready(work))),
    blocking: Some(blocking),
};

/// Also that of backon-macros.
pub(super) const fn policy() -> ExponentialBuilder {
    from(SECOND)
}

pub(super) const fn no_wait() -> ExponentialBuilder {
    from(Duration::ZERO)
}

const fn from(first: Duration) -> ExponentialBuilder {
    ExponentialBuilder::new().with_min_delay(first).with_factor(2.0).with_max_times(2)
}

async fn on_tokio(work: &Work) -> Outcome {
    (|| work.call()).retry(policy()).sleep(tokio::time::sleep).when(Failure::may_pass).await
}

async fn ready(work: &Work) -> Outcome {
    (|| work.call()).retry(policy()).sleep(at_once).when(Failure::may_pass).await
}

fn blocking(work: &Work) -> Outcome {
    (|| work.attempt()).retry(no_wait()).sleep(std::thread::sleep).when(Failure::may_pass).call()
}
