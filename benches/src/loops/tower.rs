//! tower's retry layer around a function, with the policy that its user writes.

use std::future::Ready;
use std::time::Duration;

use ::tower::retry::{Policy, Retry};
use ::tower::{ServiceExt, service_fn};
use tokio::time::Sleep;

use super::{Contender, Failure, Outcome, RETRIES, SECOND, Work, at_once, now, on_tokio};

pub(super) const CONTENDER: Contender = Contender {
    name: "tower",
    on_tokio: Some(on_tokio!(on_tokio)),
    ready: Some(|work| now(ready(work))),
    blocking: None,
};

#[derive(Clone)]
struct Doubling<S> {
    retries: u32,
    sleep: S,
}

impl<'w, W: Future<Output = ()>, S: Fn(Duration) -> W> Policy<&'w Work, u32, Failure> for Doubling<S> {
    type Future = W;

    fn retry(&mut self, _: &mut &'w Work, outcome: &mut Outcome) -> Option<W> {
        let error = outcome.as_ref().err()?;
        if !error.may_pass() || self.retries == RETRIES {
            return None;
        }
        let wait = SECOND * 2_u32.pow(self.retries);
        self.retries += 1;
        Some((self.sleep)(wait))
    }

    fn clone_request(&mut self, work: &&'w Work) -> Option<&'w Work> {
        Some(work)
    }
}

async fn on_tokio(work: &Work) -> Outcome {
    let policy = Doubling { retries: 0, sleep: tokio::time::sleep as fn(Duration) -> Sleep };
    Retry::new(policy, service_fn(Work::call)).oneshot(work).await
}

async fn ready(work: &Work) -> Outcome {
    let policy = Doubling { retries: 0, sleep: at_once as fn(Duration) -> Ready<()> };
    Retry::new(policy, service_fn(Work::call)).oneshot(work).await
}
