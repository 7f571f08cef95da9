// source: kind 12; what: `Ok`, `Err`, `Some`, `None`, `drop`, `Result`, `Option`, primitive types and macros shadowed around every option
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::cast_possible_truncation)] // our own style below

use retry_runtime::dead_letter::MemoryStore;
mod user {
    #![allow(dead_code, unused_imports, unused_macros, non_camel_case_types)]
    pub struct Ok; pub struct Err; pub struct Some; pub struct None; pub struct Result; pub struct Option; pub struct Box; pub struct String;
    pub struct Duration; pub struct Policy; pub struct Verdict; pub struct Elapsed; pub struct GaveUp; pub struct RetryContext; pub struct Display;
    pub trait Clone {} pub trait Copy {} pub trait Future {} pub trait Into {} pub trait Classify {} pub trait Fn {}
    pub fn drop() {} pub fn sleep() {} pub fn pin() {} pub fn poll_fn() {}
    pub struct u32; pub struct f64; pub struct u64; pub struct bool; pub struct str;
    macro_rules! concat { () => {}; } macro_rules! module_path { () => {}; } macro_rules! stringify { () => {}; } macro_rules! format { () => {}; }
    macro_rules! panic { () => {}; } macro_rules! matches { () => {}; }
    use super::MemoryStore;
    use core::primitive::u32 as N;

    #[derive(retry_runtime::Classify)]
    pub enum E { #[classify(retryable)] Busy, #[classify(permanent)] Denied }
    impl core::convert::From<retry_runtime::Elapsed> for E { fn from(_: retry_runtime::Elapsed) -> Self { Self::Busy } }
    #[retry_runtime::retry(
        max_retries = 2, base_delay = "1ms", max_delay = "5ms", backoff = exponential(1.5), jitter = equal, deadline = "1m",
        attempt_timeout = "5s", retry_on(E::Denied), retry_ok(0), fallback = core::result::Result::Err(error), clone(text),
        dead_letter(sink = store, job_id = "x", payload = "p"), ledger(store = store, key = "k", skipped = core::result::Result::Ok(9)), context = ctx
    )]
    pub async fn f(n: &core::cell::Cell<N>, store: &MemoryStore, text: std::string::String, mut k: N) -> core::result::Result<N, E> {
        k += 1;
        n.set(n.get() + k + text.len() as N + ctx.attempts());
        core::result::Result::Err(E::Denied)
    }
    #[retry_runtime::retry(
        max_retries = 2, base_delay = "1ms", retry_on(E::Denied), retry_ok(0), fallback = core::result::Result::Err(error), clone(text),
        dead_letter(sink = store, job_id = "x", payload = "p"), ledger(store = store, key = "k2", skipped = core::result::Result::Ok(9)), context = ctx
    )]
    pub fn g(n: &core::cell::Cell<N>, store: &MemoryStore, text: std::string::String, mut k: N) -> core::result::Result<N, E> {
        k += 1;
        n.set(n.get() + k + text.len() as N + ctx.attempts());
        core::result::Result::Err(E::Busy)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (n, store) = (std::cell::Cell::new(0), MemoryStore::new());
    assert!(user::f(&n, &store, String::new(), 0).await.is_err());
    assert_eq!(n.replace(0), 3 + 6);
    assert!(user::g(&n, &store, String::new(), 0).is_err());
    assert_eq!(n.get(), 9);
}
