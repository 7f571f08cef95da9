//! `#[retry]`.

use retry_runtime::retry;

use super::{Contender, Outcome, Work, at_once, now, on_tokio};

pub(super) const CONTENDER: Contender = Contender {
    name: "ours",
    on_tokio: Some(on_tokio!(on_tokio)),
    ready: Some(|work| now(ready(work))),
    blocking: Some(blocking),
};

#[retry(max_retries = 2, base_delay = "1s", jitter = none)]
async fn on_tokio(work: &Work) -> Outcome {
    work.call().await
}

#[retry(max_retries = 2, base_delay = "1s", jitter = none, sleep = at_once)]
async fn ready(work: &Work) -> Outcome {
    work.call().await
}

#[retry(max_retries = 2, base_delay = "0s", jitter = none)]
fn blocking(work: &Work) -> Outcome {
    work.attempt()
}
