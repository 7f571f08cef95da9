// source: kind 12; what: modules, functions, constants, imports and macros inside the body named like what generated code names
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(non_snake_case, clippy::mixed_attributes_style)] // our own style below
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

#[retry(max_retries = 2, base_delay = "1ms")]
async fn f(n: &Cell<u32>, mut k: u32) -> ::core::result::Result<u32, E> {
    #![allow(dead_code, unused_imports, unused_macros, non_upper_case_globals, non_camel_case_types)]
    mod core { pub mod result {} }
    mod retry_runtime { pub mod __private {} }
    mod std {}
    mod private {}
    struct Result;
    struct Option;
    struct Some;
    struct Ok_;
    enum Shape { Site, Session }
    const attempt: u32 = 1;
    const error: u32 = 1;
    const wait: u32 = 1;
    static site: u32 = 1;
    fn drop() {}
    fn sleep() {}
    macro_rules! concat { () => { compile_error!("hostile") }; }
    macro_rules! module_path { () => { compile_error!("hostile") }; }
    trait Future { fn poll(self) -> u8 where Self: Sized { 0 } }
    impl<T> Future for T {}
    k += attempt + error + wait + site;
    n.set(n.get() + 1);
    if n.get() < 3 { return Err(E::Busy); }
    Ok(k)
}
#[retry(max_retries = 2, base_delay = "1ms")]
fn g(n: &Cell<u32>) -> Result<u32, E> {
    #![allow(dead_code, non_camel_case_types)]
    type Result<T> = T;
    enum u32 {}
    const fn Ok_() {}
    n.set(n.get() + 1);
    let three: Result<i64> = 3;
    if i64::from(n.get()) < three { Err(E::Busy) } else { Ok(n.get()) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(f(&Cell::new(0), 1).await, Ok(5));
    assert_eq!(g(&Cell::new(0)), Ok(3));
}
