// source: kind 1; what: `retrying!` as statement, tail, argument, operand of `?`, in closures, blocks and other retried functions: its `return` ends its attempt only
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

fn takes(r: Result<u32, E>) -> u32 { r.unwrap_or(0) }

fn blocking(n: &Cell<u32>) -> String {
    let out = retrying!(max_retries = 3, base_delay = "1ms"; -> Result<u32, E> {
        n.set(n.get() + 1);
        if n.get() < 3 { return Err(E::Busy); }
        Ok(n.get())
    });
    let v = takes(retrying!(max_retries = 1, base_delay = "1ms"; -> Result<u32, E> { Err(E::Busy)?; Ok(1) }));
    let closure = |k: u32| retrying!(base_delay = "1ms"; -> Result<u32, E> { Ok(k + 1) });
    format!("{out:?} {v} {:?}", closure(1))
}
async fn asynchronous(n: &Cell<u32>) -> Result<u32, E> {
    let mut seen = Vec::new();
    let a = retrying!(base_delay = "1ms"; async -> Result<u32, E> {
        seen.push(n.get());
        n.set(n.get() + 1);
        tokio::task::yield_now().await;
        if n.get() < 3 { Err(E::Busy)?; }
        Ok(1)
    })?;
    let b = match retrying!(base_delay = "1ms"; async -> Result<u32, E> { Ok(2) }) { Ok(b) => b, Err(e) => return Err(e) };
    let fut = async { retrying!(base_delay = "1ms"; async -> Result<u32, E> { Ok(3) }) };
    assert_eq!(seen, [0, 1, 2]);
    Ok(a + b + fut.await?)
}
#[retry(max_retries = 1, base_delay = "1ms")]
async fn nested(n: &Cell<u32>) -> Result<u32, E> {
    let inner = retrying!(max_retries = 1, base_delay = "1ms"; async -> Result<u32, E> {
        n.set(n.get() + 1);
        Err(E::Busy)
    });
    inner.map_err(|_| E::Busy)
}
fn generic<T: Clone>(value: &T) -> Result<T, E> {
    retrying!(base_delay = "1ms"; -> Result<T, E> { Ok(value.clone()) })
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(blocking(&Cell::new(0)), "Ok(3) 0 Ok(2)");
    assert_eq!(asynchronous(&Cell::new(0)).await, Ok(6));
    let n = Cell::new(0);
    assert_eq!(nested(&n).await, Err(E::Busy));
    assert_eq!(n.get(), 4);
    assert_eq!(generic(&"x"), Ok("x"));
}
