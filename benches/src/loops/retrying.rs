//! `retrying!`, the expression.

use retry_runtime::retrying;

use super::{Contender, Outcome, Work, at_once, now, on_tokio};

pub(super) const CONTENDER: Contender = Contender {
    name: "ours, retrying!",
    on_tokio: Some(on_tokio!(on_tokio)),
    ready: Some(|work| now(ready(work))),
    blocking: Some(blocking),
};

async fn on_tokio(work: &Work) -> Outcome {
    retrying!(max_retries = 2, base_delay = "1s", jitter = none; async -> Outcome { work.call().await })
}

async fn ready(work: &Work) -> Outcome {
    retrying!(max_retries = 2, base_delay = "1s", jitter = none, sleep = at_once; async -> Outcome { work.call().await })
}

fn blocking(work: &Work) -> Outcome {
    retrying!(max_retries = 2, base_delay = "0s", jitter = none; -> Outcome { work.attempt() })
}
