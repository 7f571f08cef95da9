//! tokio-retry2. It knows tokio's timer alone.

use ::tokio_retry2::strategy::ExponentialBackoff;
use ::tokio_retry2::{Retry, RetryError};

use super::{Contender, Failure, Outcome, Work, on_tokio};

pub(super) const CONTENDER: Contender =
    Contender { name: "tokio-retry2", on_tokio: Some(on_tokio!(on_tokio)), ready: None, blocking: None };

async fn on_tokio(work: &Work) -> Outcome {
    let waits = ExponentialBackoff::from_millis(2).factor(500).take(2);
    Retry::spawn(waits, || attempt(work)).await
}

async fn attempt(work: &Work) -> Result<u32, RetryError<Failure>> {
    work.call().await.map_err(|error| match error {
        Failure::Busy => RetryError::transient(error),
        Failure::Denied => RetryError::permanent(error),
    })
}
