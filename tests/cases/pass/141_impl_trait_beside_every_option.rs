// source: kind 5; what: `Result<impl Trait, E>`, and `Result<_, E>` of an expression, beside every option that names a type of the signature: a classifier by path, reports, limits, second routes, patterns
// editions: 2021 2024
// level: core
#![deny(warnings)]
use retry_runtime::{retry, retrying, Classify};
use std::cell::Cell;

use retry_runtime::{Budget, CircuitBreaker, Elapsed, GaveUp, Refused, Verdict};
use std::fmt::Display;

#[derive(Debug)]
struct Foreign;
impl From<Refused> for Foreign { fn from(_: Refused) -> Self { Foreign } }
impl From<Elapsed> for Foreign { fn from(_: Elapsed) -> Self { Foreign } }
fn judge(_: &Foreign) -> Verdict { Verdict::retryable("busy") }
fn generic<T>(_: &T) -> Verdict { Verdict::retryable("busy") }

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
    #[classify(permanent)]
    Ended,
}
impl From<Refused> for E { fn from(_: Refused) -> Self { E::Ended } }
impl From<Elapsed> for E { fn from(_: Elapsed) -> Self { E::Ended } }

static BUDGET: Budget = Budget::new();
static BREAKER: CircuitBreaker = CircuitBreaker::new();

#[retry(base_delay = "1ms", classify = judge)]
async fn by_path(n: &Cell<u32>) -> Result<impl Iterator<Item = u32>, Foreign> {
    n.set(n.get() + 1);
    if n.get() < 3 { return Err(Foreign); }
    Ok(0..3)
}
#[retry(base_delay = "1ms", classify = judge)]
fn by_path_blocking(n: &Cell<u32>) -> Result<(impl Display, Vec<impl Display>), Foreign> {
    n.set(n.get() + 1);
    if n.get() < 3 { Err(Foreign)? }
    Ok(("a", vec![1]))
}
#[retry(base_delay = "1ms", classify = generic)]
async fn by_generic(n: &Cell<u32>) -> Result<Option<impl Fn(u32) -> u32>, Foreign> {
    n.set(n.get() + 1);
    if n.get() < 2 { return Err(Foreign); }
    Ok(Some(|x| x + 1))
}
#[retry(base_delay = "1ms", classify = judge)]
async fn reported(n: &Cell<u32>) -> Result<impl Display, GaveUp<Foreign>> {
    n.set(n.get() + 1);
    if n.get() < 9 { return Err(Foreign); }
    Ok(n.get())
}
#[retry(base_delay = "1ms", classify = judge, attempt_timeout = "1h", deadline = "2h", cancel = std::future::pending::<()>(), retry_on(Foreign), fallback = Ok(7), class(busy, max_retries = 1))]
async fn limited(n: &Cell<u32>) -> Result<impl Into<u64>, Foreign> {
    n.set(n.get() + 1);
    if n.get() < 9 { return Err(Foreign); }
    Ok(n.get())
}
#[retry(base_delay = "1ms", classify = judge, budget = &BUDGET, breaker = &BREAKER, context = context, fallback = { let _ = error; Ok(7) })]
fn shared(n: &Cell<u32>) -> Result<impl Into<u64>, Foreign> {
    n.set(n.get() + context.attempts());
    if n.get() < 99 { return Err(Foreign); }
    Ok(n.get())
}
#[retry(base_delay = "1ms", class(busy, max_retries = 3), stop_on(E::Ended), budget = &BUDGET, breaker = &BREAKER, attempt_timeout = "1h")]
async fn derived(n: &Cell<u32>) -> Result<impl Display + use<>, E> {
    n.set(n.get() + 1);
    if n.get() < 4 { return Err(E::Busy); }
    Ok(n.get())
}
#[retry(base_delay = "1ms", attempt_timeout = "1h")]
async fn derived_report(n: &Cell<u32>) -> Result<impl Display, GaveUp<E>> {
    n.set(n.get() + 1);
    if n.get() < 3 { return Err(E::Busy); }
    Ok(n.get())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n = Cell::new(0);
    assert_eq!(by_path(&n).await.unwrap().sum::<u32>(), 3);
    assert_eq!(n.replace(0), 3);
    let (one, list) = by_path_blocking(&n).unwrap();
    assert_eq!(format!("{one}{}", list[0]), "a1");
    assert_eq!(n.replace(0), 3);
    assert_eq!(by_generic(&n).await.unwrap().unwrap()(1), 2);
    assert_eq!(n.replace(0), 2);
    assert!(reported(&n).await.is_err_and(|report| report.attempts() == 3));
    assert_eq!(n.replace(0), 3);
    assert_eq!(limited(&n).await.unwrap().into(), 7);
    assert_eq!(n.replace(0), 2);
    assert_eq!(shared(&n).unwrap().into(), 7);
    assert_eq!(n.replace(0), 1 + 2 + 3);
    assert_eq!(derived(&n).await.unwrap().to_string(), "4");
    n.set(0);
    let left_open = retrying!(base_delay = "1ms", classify = judge, class(busy, max_retries = 3); -> Result<_, Foreign> {
        n.set(n.get() + 1);
        if n.get() < 4 { Err(Foreign)? }
        Ok(n.get())
    });
    assert_eq!(left_open.unwrap(), 4);
    n.set(0);
    let reported = retrying!(base_delay = "1ms", class(busy, max_retries = 3), attempt_timeout = "1h"; async -> Result<_, GaveUp<E>> {
        n.set(n.get() + 1);
        if n.get() < 4 { Err(E::Busy)? }
        Ok(n.get())
    });
    assert_eq!(reported.unwrap(), 4);
    n.set(0);
    assert_eq!(derived_report(&n).await.unwrap().to_string(), "3");
}
