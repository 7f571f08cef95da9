//! The programs of docs/testing.md, in its order.
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::future::Future;
use std::time::Duration;

use retry_runtime::dead_letter::{DeadLetter, Filter, MemoryStore, Parking, Ticket};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::reply::Reply;
use retry_runtime::testing::{Chaos, Faults, FixedRandom, Planted, Scripted, assert_plan, no_waits, scripted};
use retry_runtime::{
    Budget, Classify, DeadLetterSink, DeadLetterStore, Elapsed, GaveUp, Jitter, Policy, StopReason, retry,
};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum FetchError {
    #[error("the server is busy")]
    #[classify(retryable)]
    Busy,
    #[error("not allowed")]
    #[classify(permanent)]
    Denied,
    #[error("too slow: {0}")]
    #[classify(transparent)]
    Slow(#[from] Elapsed),
}

/// What the function asks, so that a test can put something else in its place.
trait Client {
    fn get(&self, url: &str) -> impl Future<Output = Result<String, FetchError>>;
}

const POLICY: Policy = Policy::new().max_retries(3).base_delay(Duration::from_secs(2)).jitter(Jitter::Equal);

#[retry(policy = POLICY)]
async fn fetch(client: &impl Client, url: &str) -> Result<String, FetchError> {
    client.get(url).await
}

impl Client for Scripted<String, FetchError> {
    async fn get(&self, _url: &str) -> Result<String, FetchError> {
        self.call()
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let _quick = no_waits();
    let client = scripted([Err(FetchError::Busy), Err(FetchError::Busy), Ok("page".to_owned())]);
    assert_eq!(fetch(&client, "/").await.unwrap(), "page");
    assert_eq!(client.calls(), 3);
}

#[tokio::test]
async fn a_refusal_is_final() {
    let waits = no_waits();
    let client = scripted([Err(FetchError::Denied)]); // a second call would fail the test
    assert_eq!(fetch(&client, "/").await, Err(FetchError::Denied));
    assert_eq!(waits.recorded(), []);
}

#[test]
fn the_policy_is_what_was_agreed_on() {
    assert_plan!(POLICY, "4 attempts; waits 1s..2s, 2s..4s, 4s..8s; at most 14s in total");
    assert_plan!(POLICY, ["1s..2s", "2s..4s", "4s..8s"]);
}

#[tokio::test]
async fn jitter_spreads_the_waits() {
    let waits = no_waits();
    let _same_in_every_run = FixedRandom::seed(7);
    let down = scripted(std::iter::repeat_with(|| Err(FetchError::Busy)));
    let _failed = fetch(&down, "/").await;
    assert_eq!(waits.recorded().len(), 3);
    assert!(waits.recorded().iter().zip([1, 2, 4]).all(|(wait, least)| wait.as_secs() >= least));
}

#[retry(max_retries = 9, base_delay = "1s", deadline = "10s", attempt_timeout = "4s")]
async fn fetch_in_time(client: &impl Client, url: &str) -> Result<String, GaveUp<FetchError>> {
    client.get(url).await
}

/// A server that never answers.
struct Hangs;

impl Client for Hangs {
    async fn get(&self, _url: &str) -> Result<String, FetchError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_given_up_in_time() {
    let begun = tokio::time::Instant::now();
    let gave_up = fetch_in_time(&Hangs, "/").await.unwrap_err();
    assert_eq!(gave_up.reason(), StopReason::Deadline);
    assert_eq!(begun.elapsed(), Duration::from_secs(9)); // 4 s, a wait of 1 s, 4 s; a wait of 2 s would end too late
}

#[test]
fn a_budget_ends_the_retries() {
    #[retry(max_retries = 9, budget = budget)]
    fn ask(budget: &Budget, server: &Scripted<(), FetchError>) -> Result<(), GaveUp<FetchError>> {
        server.call()
    }
    let _quick = no_waits();
    let budget = Budget::new().min_per_second(0); // lives on successes alone: a fifth of a retry for each
    (0..10).for_each(|_| budget.succeeded());
    let down = scripted(std::iter::repeat_with(|| Err(FetchError::Busy)));
    let gave_up = ask(&budget, &down).unwrap_err();
    assert_eq!((gave_up.reason(), down.calls()), (StopReason::BudgetDenied, 3));
}

#[retry(max_retries = 1, dead_letter(sink = dlq, job_id = job, payload = job))]
async fn work(dlq: &impl DeadLetterSink, job: u32, client: &impl Client) -> Result<String, GaveUp<FetchError>> {
    client.get("/").await
}

#[tokio::test]
async fn what_fails_is_parked() {
    let _quick = no_waits();
    let dlq = MemoryStore::new();
    let down = scripted([Err(FetchError::Busy), Err(FetchError::Busy)]);
    work(&dlq, 7, &down).await.unwrap_err();
    let parked = dlq.count(Filter::parked()).await.unwrap();
    assert_eq!(parked, 1);
}

/// A store that is full.
struct Full(MemoryStore);

impl Faults for Full {
    type Inner = MemoryStore;
    fn inner(&self) -> &MemoryStore {
        &self.0
    }
    fn submit(&self, _: DeadLetter) -> Ticket {
        let because = StoreError::new(StoreErrorKind::Full, "no space left");
        Reply::ready(Parking::Lost { because })
    }
}

#[tokio::test]
async fn a_store_that_fails_changes_nothing_for_the_caller() {
    let dlq = Planted(Full(MemoryStore::new()));
    let gave_up = work(&dlq, 7, &scripted([Err(FetchError::Denied)])).await.unwrap_err();
    assert_eq!(gave_up.last(), Some(&FetchError::Denied));
    assert!(matches!(gave_up.parking(), Some(Parking::Lost { .. })));
    assert_eq!(dlq.count(Filter::all()).await.unwrap(), 0); // every other verb is the inner store's
}

/// The real client, with chaos around it.
struct Shaken<C>(C, Chaos<FetchError>);

impl<C: Client> Client for Shaken<C> {
    async fn get(&self, url: &str) -> Result<String, FetchError> {
        self.1.run(|| self.0.get(url)).await
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_in_bad_weather() {
    for seed in 0..20 {
        let dlq = MemoryStore::new();
        let chaos = Chaos::seeded(seed)
            .errors(0.4, || FetchError::Busy)
            .latency(0.5, Duration::from_millis(10)..=Duration::from_secs(3));
        let client = Shaken(scripted(std::iter::repeat_with(|| Ok("page".to_owned()))), chaos);
        let mut done = 0;
        for job in 0..100 {
            done += u64::from(work(&dlq, job, &client).await.is_ok());
        }
        let parked = dlq.count(Filter::parked()).await.unwrap();
        assert_eq!(done + parked, 100, "seed {seed}: {}", client.1.tally());
        assert!(parked > 0, "seed {seed}: {}", client.1.tally());
    }
}
