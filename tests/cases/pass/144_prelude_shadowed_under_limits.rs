// source: kind 12; what: `Ok`, `Err`, `Some`, `None`, `drop`, `Result`, `Option`, primitive types and macros shadowed around limits, cancelling and nesting
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
    pub fn drop() {} pub fn sleep() {} pub fn pin() {} pub fn poll_fn() {} pub fn mark() {} pub fn attempt() {} pub fn nested() {}
    pub struct Budget; pub struct CircuitBreaker; pub struct Guards; pub struct Mark; pub struct Site; pub struct Poll; pub struct Classes;
    pub struct u32; pub struct f64; pub struct u64; pub struct bool; pub struct str;
    macro_rules! concat { () => {}; } macro_rules! module_path { () => {}; } macro_rules! stringify { () => {}; } macro_rules! format { () => {}; }
    macro_rules! pin { () => {}; } macro_rules! panic { () => {}; } macro_rules! matches { () => {}; }
    use super::MemoryStore;
    use core::primitive::u32 as N;

    #[derive(retry_runtime::Classify)]
    pub enum E { #[classify(retryable)] Busy, #[classify(permanent)] Denied }
    impl core::convert::From<retry_runtime::Refused> for E { fn from(_: retry_runtime::Refused) -> Self { Self::Denied } }
    impl core::convert::From<retry_runtime::Elapsed> for E { fn from(_: retry_runtime::Elapsed) -> Self { Self::Busy } }
    static BUDGET: retry_runtime::Budget = retry_runtime::Budget::new();
    static BREAKER: retry_runtime::CircuitBreaker = retry_runtime::CircuitBreaker::new();
    #[retry_runtime::retry(
        base_delay = "1ms", class(busy, max_retries = 1), idempotent = false, nested = outer_only, budget = &BUDGET, breaker = &BREAKER,
        cancel = core::future::pending::<()>(), attempt_timeout = "5s", fallback = core::result::Result::Err(error),
        dead_letter(sink = store, job_id = "x", payload = "p")
    )]
    pub async fn f(n: &core::cell::Cell<N>, store: &MemoryStore) -> core::result::Result<N, E> {
        n.set(n.get() + 1);
        core::result::Result::Err(E::Busy)
    }
    #[retry_runtime::retry(
        base_delay = "1ms", class(busy, max_retries = 1), idempotent = false, nested = outer_only, budget = &BUDGET, breaker = &BREAKER,
        fallback = core::result::Result::Err(error), dead_letter(sink = store, job_id = "x", payload = "p")
    )]
    pub fn g(n: &core::cell::Cell<N>, store: &MemoryStore) -> core::result::Result<N, E> {
        n.set(n.get() + 1);
        core::result::Result::Err(E::Busy)
    }
    #[retry_runtime::retry(base_delay = "1ms", nested = detect)]
    pub async fn h(n: &core::cell::Cell<N>) -> core::result::Result<N, E> {
        n.set(n.get() + 1);
        core::result::Result::Err(E::Busy)
    }
    pub fn i(n: &core::cell::Cell<N>) -> core::result::Result<N, E> {
        retry_runtime::retrying!(base_delay = "1ms", nested = detect, budget = &BUDGET, breaker = &BREAKER; -> core::result::Result<N, E> {
            n.set(n.get() + 1);
            core::result::Result::Err(E::Busy)
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (n, store) = (std::cell::Cell::new(0), MemoryStore::new());
    assert!(user::f(&n, &store).await.is_err());
    assert_eq!(n.replace(0), 2);
    assert!(user::g(&n, &store).is_err());
    assert_eq!(n.replace(0), 2);
    assert!(user::h(&n).await.is_err() && user::i(&n).is_err());
    assert_eq!(n.replace(0), 6);
}
