//! `Retry`, the builder: what is set up at run time.

use std::time::Duration;

use retry_runtime::{Jitter, Policy, Retry};

use super::{Contender, Outcome, RETRIES, SECOND, Work, at_once, now, on_tokio};

pub(super) const CONTENDER: Contender = Contender {
    name: "ours, builder",
    on_tokio: Some(on_tokio!(on_tokio)),
    ready: Some(|work| now(ready(work))),
    blocking: Some(blocking),
};

const POLICY: Policy = Policy::new().max_retries(RETRIES).base_delay(SECOND).jitter(Jitter::None);

async fn on_tokio(work: &Work) -> Outcome {
    Retry::new(POLICY).name("builder").run(|| work.call()).await
}

async fn ready(work: &Work) -> Outcome {
    Retry::new(POLICY).name("builder").run_with(at_once, || work.call()).await
}

fn blocking(work: &Work) -> Outcome {
    const AT_ONCE: Policy = POLICY.base_delay(Duration::ZERO);
    Retry::new(AT_ONCE).name("builder").run_blocking(|| work.attempt())
}
