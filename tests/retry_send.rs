//! The future is `Send` whenever the plain body's is, also where the error is not: nothing of it lives across a wait.

use std::rc::Rc;

use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::observe::{Event, Observer, from_fn};
use retry_runtime::{Classify, GaveUp, Policy, Retry, RetryContext, retry};

/// An error that no other thread may have.
#[derive(Debug, Classify)]
#[classify(retryable)]
struct Local(Rc<u32>);

async fn ask(n: u32) -> Result<u32, Local> {
    tokio::task::yield_now().await;
    if n > 0 { Ok(n) } else { Err(Local(Rc::new(n))) }
}

#[retry]
async fn plain(n: u32) -> Result<u32, Local> {
    ask(n).await
}

#[retry(deadline = "5s", retry_on(Local(code) if **code > 1), retry_ok(7), context = ctx)]
async fn with_options(ctx: &mut RetryContext, n: u32) -> Result<u32, Local> {
    ask(n).await
}

#[retry(attempt_timeout = "2s")]
async fn reported(n: u32) -> Result<u32, GaveUp<Local>> {
    ask(n).await
}

#[retry(observer = observer, attempt_timeout = "2s")]
async fn watched(observer: &dyn Observer, n: u32) -> Result<u32, GaveUp<Local>> {
    ask(n).await
}

#[retry(
    name = "all",
    observer = observer,
    cancel = std::future::pending::<()>(),
    fallback = ask(n).await.map_err(|_| Shared),
    dead_letter(sink = dlq),
    ledger(store = dlq, key = n)
)]
async fn watched_and_parked(observer: &dyn Observer, dlq: &MemoryStore, n: u32) -> Result<u32, GaveUp<Shared>> {
    ask(n).await.map_err(|_| Shared)
}

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Shared;

/// Compiles for futures that may go to another thread between two polls.
fn sends<F: Future + Send>(future: F) -> F {
    future
}

// 6.3
#[tokio::test(start_paused = true)]
async fn a_local_error_keeps_no_future_local() {
    let mut ctx = RetryContext::new();
    assert!(sends(plain(0)).await.is_err_and(|error| *error.0 == 0));
    assert_eq!(sends(with_options(&mut ctx, 1)).await.ok(), Some(1));
    assert_eq!(sends(reported(0)).await.err().and_then(GaveUp::into_last).map(|error| *error.0), Some(0));
    assert_eq!(sends(Retry::new(Policy::new()).run(|| ask(1))).await.ok(), Some(1));
    let nobody = from_fn(|_: &Event<'_>| ());
    assert_eq!(sends(Retry::new(Policy::new()).observer(&nobody).run(|| ask(1))).await.ok(), Some(1));
    assert_eq!(sends(watched(&nobody, 1)).await.ok(), Some(1));
    assert_eq!(sends(watched_and_parked(&nobody, &MemoryStore::new(), 1)).await.ok(), Some(1));
}
