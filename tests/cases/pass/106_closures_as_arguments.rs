// source: kind 3, 6; what: Fn, FnMut, AsyncFn and boxed closures as arguments, by value, by reference, generic and dyn
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

use retry_runtime::retrying;
use std::future::Future;
use std::pin::Pin;

#[retry(base_delay = "1ms")]
async fn a(op: impl Fn(u32) -> Result<u32, E>, n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); op(n.get()) }
#[retry(base_delay = "1ms", share(op))]
async fn b(mut op: impl FnMut() -> Result<u32, E>) -> Result<u32, E> { op() }
#[retry(base_delay = "1ms")]
fn c(op: &mut impl FnMut() -> Result<u32, E>) -> Result<u32, E> { op() }
#[retry(base_delay = "1ms")]
async fn d(op: &mut dyn FnMut() -> Result<u32, E>) -> Result<u32, E> { op() }
#[retry(base_delay = "1ms")]
async fn e<F, Fut>(op: F) -> Result<u32, E> where F: Fn() -> Fut, Fut: Future<Output = Result<u32, E>> { op().await }
#[retry(base_delay = "1ms")]
async fn f(op: impl AsyncFn(u32) -> Result<u32, E>) -> Result<u32, E> { op(1).await }
#[retry(base_delay = "1ms", share(op))]
async fn g(mut op: impl AsyncFnMut() -> Result<u32, E>) -> Result<u32, E> { op().await }
type Boxed<'a> = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<u32, E>> + 'a>> + 'a>;
#[retry(base_delay = "1ms")]
async fn h(op: Boxed<'_>) -> Result<u32, E> { op().await }
#[retry(base_delay = "1ms")]
fn i(op: fn(u32) -> Result<u32, E>) -> Result<u32, E> { op(3) }
#[retry(base_delay = "1ms", clone(op))]
fn j(op: impl FnOnce() -> Result<u32, E> + Clone) -> Result<u32, E> { op() }

fn go(n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy) } else { Ok(n.get()) } }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n = Cell::new(0);
    let fresh = || { n.set(0); &n };
    assert_eq!(a(|k| if k < 3 { Err(E::Busy) } else { Ok(k) }, fresh()).await, Ok(3));
    let mut count = 0;
    assert_eq!(b(|| { count += 1; if count < 3 { Err(E::Busy) } else { Ok(count) } }).await, Ok(3));
    fresh();
    assert_eq!(c(&mut || go(&n)), Ok(3));
    fresh();
    assert_eq!(d(&mut || go(&n)).await, Ok(3));
    fresh();
    assert_eq!(e(|| async { go(&n) }).await, Ok(3));
    fresh();
    assert_eq!(f(async |k| Ok(go(&n)? + k)).await, Ok(4));
    let mut count = 0;
    assert_eq!(g(async || { count += 1; if count < 3 { Err(E::Busy) } else { Ok(count) } }).await, Ok(3));
    fresh();
    assert_eq!(h(Box::new(|| Box::pin(async { go(&n) }))).await, Ok(3));
    assert_eq!(i(Ok), Ok(3));
    fresh();
    assert_eq!(j(|| go(&n)), Ok(3));
    let mut log = vec![];
    let out = retrying!(base_delay = "1ms"; -> Result<usize, E> { log.push(1); if log.len() < 3 { Err(E::Busy) } else { Ok(log.len()) } });
    assert_eq!((out, log.len()), (Ok(3), 3));
}
