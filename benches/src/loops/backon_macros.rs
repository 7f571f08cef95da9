//! backon's attribute.

use ::backon_macros::backon;

use super::backon::{no_wait, policy};
use super::{Contender, Failure, Outcome, Work, at_once, now, on_tokio};

pub(super) const CONTENDER: Contender = Contender {
    name: "backon-macros",
    on_tokio: Some(on_tokio!(on_tokio)),
    ready: Some(|work| now(ready(work))),
    blocking: Some(blocking),
};

#[backon(backoff = policy, sleep = tokio::time::sleep, when = Failure::may_pass)]
async fn on_tokio(work: &Work) -> Outcome {
    work.call().await
}

#[backon(backoff = policy, sleep = at_once, when = Failure::may_pass)]
async fn ready(work: &Work) -> Outcome {
    work.call().await
}

#[backon(backoff = no_wait, sleep = std::thread::sleep, when = Failure::may_pass)]
fn blocking(work: &Work) -> Outcome {
    work.attempt()
}
