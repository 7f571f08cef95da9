// source: kind 14; what: ten retried async calls inside each other, generic ones included, need no recursion limit
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

macro_rules! chain {
    ($last:ident) => { #[retry(base_delay = "1ms")] async fn $last<T: Send + Sync>(t: &T) -> Result<u32, E> { tokio::task::yield_now().await; if size_of_val(t) > 99 { Err(E::Busy) } else { Ok(1) } } };
    ($first:ident $next:ident $($rest:ident)*) => {
        #[retry(base_delay = "1ms")] async fn $first<T: Send + Sync>(t: &T) -> Result<u32, E> { Ok($next(t).await? + 1) }
        chain!($next $($rest)*);
    };
}
chain!(a1 a2 a3 a4 a5 a6 a7 a8 a9 a10);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(tokio::spawn(async { a1(&1).await.ok() }).await.unwrap(), Some(10));
    let _ = Cell::new(0);
}
