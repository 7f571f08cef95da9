// source: kind 14; what: the body is stored once whatever options are given, and nested retried calls do not multiply
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

use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::{GaveUp, RetryContext};

macro_rules! body { ($seed:ident) => {{
    let buf = [$seed; 4096];
    tokio::task::yield_now().await;
    if buf[0] == 0 { return Err(E::Busy); }
    Ok(buf.iter().map(|b| u64::from(*b)).sum::<u64>())
}}; }
async fn plain(seed: u8) -> Result<u64, E> { body!(seed) }
#[retry(jitter = full, retry_on(E::Denied), max_retries = 3, base_delay = "1ms")]
async fn patterns(seed: u8) -> Result<u64, E> { body!(seed) }
#[retry(attempt_timeout = "5s", deadline = "1m", base_delay = "1ms")]
async fn limited(seed: u8) -> Result<u64, GaveUp<E>> { body!(seed) }
#[retry(context = ctx, base_delay = "1ms")]
async fn context(seed: u8, ctx: &mut RetryContext) -> Result<u64, E> { body!(seed) }
#[retry(base_delay = "1ms", fallback = plain(1).await, dead_letter(sink = store), ledger(store = store, key = 1, skipped = Ok(0)))]
async fn whole(seed: u8, store: &MemoryStore) -> Result<u64, E> { body!(seed) }
#[retry(base_delay = "1ms")]
async fn one(seed: u8) -> Result<u64, E> { plain(seed).await }
#[retry(base_delay = "1ms")]
async fn two(seed: u8) -> Result<u64, E> { one(seed).await }
#[retry(base_delay = "1ms")]
async fn three(seed: u8) -> Result<u64, E> { two(seed).await }
#[retry(base_delay = "1ms")]
async fn four(seed: u8) -> Result<u64, E> { three(seed).await }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (store, mut ctx) = (MemoryStore::new(), RetryContext::new());
    let base = size_of_val(&plain(1));
    for (name, size) in [
        ("patterns", size_of_val(&patterns(1))), ("limited", size_of_val(&limited(1))), ("context", size_of_val(&context(1, &mut ctx))),
        ("whole", size_of_val(&whole(1, &store))), ("four", size_of_val(&four(1))),
    ] {
        assert!(size < base + 1536, "{name}: plain {base}, retried {size}");
    }
    assert_eq!(four(1).await, Ok(4096));
    assert_eq!(whole(0, &store).await, Ok(4096));
    let _ = Cell::new(0);
}
