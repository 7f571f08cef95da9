//! tokio-retry. It knows tokio's timer alone.

use ::tokio_retry::RetryIf;
use ::tokio_retry::strategy::ExponentialBackoff;

use super::{Contender, Failure, Outcome, Work, on_tokio};

pub(super) const CONTENDER: Contender =
    Contender { name: "tokio-retry", on_tokio: Some(on_tokio!(on_tokio)), ready: None, blocking: None };

async fn on_tokio(work: &Work) -> Outcome {
    let waits = ExponentialBackoff::from_millis(2).factor(500).take(2);
    RetryIf::start(waits, || work.call(), Failure::may_pass).await
}
