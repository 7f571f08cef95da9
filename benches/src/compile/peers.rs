//! Who retries without an attribute: the loop as each one's documentation has it.

use super::contenders::{BACKON, BACKON_MACROS, BLOCK, Contender, F, FAILURE, HAND, OURS, PLAIN};
use super::project;

/// Those of whom one call is made.
pub(super) const RETRYING: [Contender; 12] =
    [PLAIN, HAND, BLOCK, OURS, BACKON, BACKON_MACROS, TOKIO_RETRY, TOKIO_RETRY2, TRYHARD, TOWER, RELENTLESS, BACKOFF];

const TOKIO_RETRY: Contender = Contender {
    name: "tokio-retry",
    dependencies: project::TOKIO_RETRY,
    prelude: "use tokio_retry::RetryIf;
use tokio_retry::strategy::ExponentialBackoff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure { Busy, Denied }
",
    function: "pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    RetryIf::start(ExponentialBackoff::from_millis(2).take(2), || call(url, VALUE), Failure::may_pass).await
}",
    call: F,
};

const TOKIO_RETRY2: Contender = Contender {
    name: "tokio-retry2",
    dependencies: project::TOKIO_RETRY2,
    prelude: "use tokio_retry2::strategy::ExponentialBackoff;
use tokio_retry2::{Retry, RetryError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure { Busy, Denied }

fn judged(error: Failure) -> RetryError<Failure> {
    match error {
        Failure::Busy => RetryError::transient(error),
        Failure::Denied => RetryError::permanent(error),
    }
}
",
    function: "pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    let waits = ExponentialBackoff::from_millis(2).take(2);
    Retry::spawn(waits, || async { call(url, VALUE).await.map_err(judged) }).await
}",
    call: F,
};

/// Retries whatever fails.
const TRYHARD: Contender = Contender {
    name: "tryhard",
    dependencies: project::TRYHARD,
    prelude: FAILURE,
    function: "pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    tryhard::retry_fn(|| call(url, VALUE)).retries(2).exponential_backoff(Duration::from_millis(1)).await
}",
    call: F,
};

const BACKOFF: Contender = Contender {
    name: "backoff",
    dependencies: project::BACKOFF,
    prelude: "use backoff::{Error, ExponentialBackoff, ExponentialBackoffBuilder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure { Busy, Denied }

fn waits() -> ExponentialBackoff {
    ExponentialBackoffBuilder::new()
        .with_initial_interval(Duration::from_millis(1))
        .with_randomization_factor(0.0)
        .with_multiplier(2.0)
        .with_max_elapsed_time(None)
        .build()
}

// it counts time and not attempts, so its user counts these
fn judged(error: Failure, attempts: u32) -> Error<Failure> {
    if error.may_pass() && attempts < 3 { Error::transient(error) } else { Error::permanent(error) }
}
",
    function: "pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    let attempts = AtomicU32::new(0);
    let attempt = || async {
        let so_far = attempts.fetch_add(1, Relaxed) + 1;
        call(url, VALUE).await.map_err(|error| judged(error, so_far))
    };
    backoff::future::retry(waits(), attempt).await
}",
    call: F,
};

const TOWER: Contender = Contender {
    name: "tower",
    dependencies: project::TOWER,
    prelude: "use tower::retry::{Policy, Retry};
use tower::{ServiceExt, service_fn};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure { Busy, Denied }

#[derive(Clone)]
struct Doubling(u32);

impl<'u> Policy<&'u str, u32, Failure> for Doubling {
    type Future = tokio::time::Sleep;

    fn retry(&mut self, _: &mut &'u str, outcome: &mut Result<u32, Failure>) -> Option<Self::Future> {
        let error = outcome.as_ref().err()?;
        if !error.may_pass() || self.0 == 2 {
            return None;
        }
        let wait = Duration::from_millis(1) * 2_u32.pow(self.0);
        self.0 += 1;
        Some(tokio::time::sleep(wait))
    }

    fn clone_request(&mut self, url: &&'u str) -> Option<&'u str> {
        Some(url)
    }
}
",
    function: "pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    Retry::new(Doubling(0), service_fn(|url| call(url, VALUE))).oneshot(url).await
}",
    call: F,
};

const RELENTLESS: Contender = Contender {
    name: "relentless",
    dependencies: project::RELENTLESS,
    prelude: "use relentless::clock::TokioClock;
use relentless::{RetryError, predicate, retry_async, stop, wait};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure { Busy, Denied }

fn last(error: RetryError<Failure, Result<u32, Failure>>) -> Failure {
    match error {
        RetryError::Aborted { last } | RetryError::Exhausted { last: Err(last) } => last,
        _ => Failure::Denied,
    }
}
",
    function: "pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    retry_async(|_| call(url, VALUE))
        .when(predicate::error(Failure::may_pass))
        .wait(wait::exponential(Duration::from_millis(1)))
        .stop(stop::attempts(3))
        .clock(TokioClock::new())
        .call()
        .await
        .map_err(last)
}",
    call: F,
};
