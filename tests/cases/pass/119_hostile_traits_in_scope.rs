// source: kind 12; what: a blanket trait whose by-value methods are named like everything generated code could call
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

#[allow(unused_imports)] // what is never called is never used
use names::Hostile as _;
use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::{GaveUp, RetryContext};

mod names {
    #![allow(dead_code, unused_macros)]
    pub trait Hostile {
        fn as_mut(self) -> u8 where Self: Sized { 0 }
        fn as_ref(self) -> u8 where Self: Sized { 0 }
        fn poll(self) -> u8 where Self: Sized { 0 }
        fn is_zero(self) -> u8 where Self: Sized { 0 }
        fn into_future(self) -> u8 where Self: Sized { 0 }
        fn checked(self) -> u8 where Self: Sized { 0 }
        fn clone(self) -> u8 where Self: Sized { 0 }
        fn deadline(self) -> u8 where Self: Sized { 0 }
        fn to_string(self) -> u8 where Self: Sized { 0 }
        fn err(self) -> u8 where Self: Sized { 0 }
        fn ok(self) -> u8 where Self: Sized { 0 }
        fn map_err(self) -> u8 where Self: Sized { 0 }
        fn begin(self) -> u8 where Self: Sized { 0 }
        fn submit(self) -> u8 where Self: Sized { 0 }
    }
    impl<T> Hostile for T {}
}

#[retry(max_retries = 2, base_delay = "1ms", attempt_timeout = "5s", deadline = "1m", clone(text), retry_on(E::Denied), context = ctx)]
async fn a(n: &Cell<u32>, text: String, ctx: &mut RetryContext) -> Result<u32, GaveUp<E>> {
    n.set(n.get() + 1);
    drop(text);
    if n.get() < 3 { Err(E::Denied) } else { Ok(RetryContext::attempts(ctx)) }
}
#[retry(max_retries = 2, base_delay = "1ms", fallback = Err(error), retry_ok(0),
    dead_letter(sink = store, job_id = "x", payload = "p"), ledger(store = store, key = "k", skipped = Ok(9)))]
async fn b(n: &Cell<u32>, store: &MemoryStore) -> Result<u32, E> { n.set(n.get() + 1); Err(E::Busy) }
#[retry(max_retries = 2, base_delay = "1ms", fallback = Err(error), context = ctx,
    dead_letter(sink = store, job_id = "x", payload = "p"), ledger(store = store, key = "k", skipped = Ok(9)))]
fn c(n: &Cell<u32>, store: &MemoryStore) -> Result<u32, E> { n.set(n.get() + RetryContext::attempts(&ctx)); Err(E::Busy) }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (n, store) = (Cell::new(0), MemoryStore::new());
    assert!(matches!(a(&n, String::new(), &mut RetryContext::new()).await, Ok(3)));
    n.set(0);
    assert!(matches!(b(&n, &store).await, Err(E::Busy)));
    assert_eq!(n.replace(0), 3);
    assert!(matches!(c(&n, &store), Err(E::Busy)));
    assert_eq!(n.get(), 6);
}
