// source: kind 6, 9; what: fallbacks: expression, block, await, `?` of their own, the error by value, arguments as the caller gave them
// editions: 2021 2024
// level: hard
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

use retry_runtime::{GaveUp, StopReason};

async fn second(n: &Cell<u32>, fail: bool) -> Result<u32, E> { n.set(n.get() + 100); if fail { Err(E::Denied) } else { Ok(n.get()) } }
#[retry(max_retries = 1, base_delay = "1ms", fallback = second(n, false).await)]
async fn a(n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); Err(E::Busy) }
#[retry(max_retries = 1, base_delay = "1ms", fallback = { let v = second(n, fail).await?; if v > 1000 { return Err(E::Denied); } Ok(v + 1) })]
async fn b(n: &Cell<u32>, fail: bool) -> Result<u32, E> { n.set(n.get() + 1); Err(E::Busy) }
#[retry(max_retries = 1, base_delay = "1ms", fallback = match error { E::Busy => Ok(body.len()), other => Err(other) })]
fn c(body: String, deny: bool) -> Result<usize, E> { if body.is_empty() || deny { Err(E::Denied) } else { Err(E::Busy) } }
#[retry(max_retries = 1, base_delay = "1ms", clone(body), fallback = Ok(body + "!"))]
async fn d(body: String) -> Result<String, E> { drop(body); Err(E::Busy) }
#[retry(max_retries = 1, base_delay = "1ms", fallback = if error.reason() == StopReason::Exhausted { Err(error.into_last().unwrap()) } else { Ok(1) })]
fn e() -> Result<u32, GaveUp<E>> { Err(E::Busy) }
#[retry(max_retries = 1, base_delay = "1ms", fallback = Ok(k))]
fn f(mut k: u32) -> Result<u32, E> { k += 5; let _ = k; Err(E::Busy) }
#[retry(max_retries = 1, base_delay = "1ms", fallback = Ok(log.len()))]
async fn g(log: &mut Vec<u32>) -> Result<usize, E> { log.push(1); Err(E::Busy) }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n = Cell::new(0);
    assert_eq!(a(&n).await, Ok(102));
    n.set(0);
    assert_eq!((b(&n, false).await, b(&n, true).await), (Ok(103), Err(E::Denied)));
    assert_eq!((c("ab".into(), false), c("ab".into(), true)), (Ok(2), Err(E::Denied)));
    assert_eq!(d("x".into()).await, Ok("x!".to_string()));
    assert!(e().is_err());
    assert_eq!((f(1), g(&mut vec![]).await), (Ok(1), Ok(2)));
}
