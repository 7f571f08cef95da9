// source: kind 2; what: E is not Send (nor Debug, nor Display): the future is Send all the same, with patterns, report, deadline, time-out and context
// editions: 2021 2024
// level: core
#![deny(warnings)]
use retry_runtime::{retry, Classify};
use std::cell::Cell;

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
    #[allow(dead_code)]
    #[classify(permanent)]
    Denied,
}

use retry_runtime::{GaveUp, RetryContext};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

#[derive(Classify)]
enum Local {
    #[classify(retryable)]
    Busy(#[allow(dead_code)] Rc<u32>),
    #[classify(permanent)]
    Never(#[allow(dead_code)] *const u8),
}

#[retry(max_retries = 2, base_delay = "1ms", stop_on(Local::Never(_)), retry_on(Local::Busy(n) if **n > 0))]
async fn plain(n: &AtomicU32) -> Result<u32, Local> {
    tokio::task::yield_now().await;
    if n.fetch_add(1, SeqCst) < 2 { Err(Local::Busy(Rc::new(1))) } else { Ok(3) }
}
#[retry(max_retries = 1, base_delay = "1ms", deadline = "1m", attempt_timeout = "30s")]
async fn reported(n: &AtomicU32) -> Result<u32, GaveUp<Local>> {
    tokio::task::yield_now().await;
    n.fetch_add(1, SeqCst);
    Err(Local::Busy(Rc::new(1)))
}
#[retry(max_retries = 1, base_delay = "1ms", context = ctx)]
async fn seen(ctx: &mut RetryContext, n: &AtomicU32) -> Result<u32, Local> {
    tokio::task::yield_now().await;
    n.fetch_add(1, SeqCst);
    Err(Local::Busy(Rc::new(ctx.attempts())))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    static N: AtomicU32 = AtomicU32::new(0);
    assert!(tokio::spawn(async { plain(&N).await.is_ok() }).await.unwrap());
    assert!(tokio::spawn(async { reported(&N).await.map_err(|g| g.attempts()) == Err(2) }).await.unwrap());
    let task = tokio::spawn(async {
        let mut ctx = RetryContext::new();
        seen(&mut ctx, &N).await.is_err() && ctx.attempts() == 2
    });
    assert!(task.await.unwrap());
    assert_eq!(N.load(SeqCst), 7);
    let _ = (Local::Never(std::ptr::null()), E::Busy, Cell::new(0));
}
