//! tryhard. It knows tokio's timer alone, and retries whatever fails.

use super::{Contender, Outcome, RETRIES, SECOND, Work, on_tokio};

pub(super) const CONTENDER: Contender =
    Contender { name: "tryhard", on_tokio: Some(on_tokio!(on_tokio)), ready: None, blocking: None };

async fn on_tokio(work: &Work) -> Outcome {
    ::tryhard::retry_fn(|| work.call()).retries(RETRIES).exponential_backoff(SECOND).await
}
