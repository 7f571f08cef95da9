// source: kind 5; what: classify = a path: generic, associated, through a trait with a qualified path, const fn, fn pointer constant; E is nothing but a type
// editions: 2021 2024
// level: core
#![deny(warnings)]
use retry_runtime::{retry, Classify};
use std::cell::Cell;

use retry_runtime::{GaveUp, Verdict};
struct Foreign<T>(T);
fn generic<T: PartialOrd + Default>(e: &Foreign<T>) -> Verdict { if e.0 > T::default() { Verdict::retryable("x") } else { Verdict::permanent("x") } }
trait Judge<X> { fn judge(x: &X) -> Verdict; }
struct Strict;
impl<T> Judge<Foreign<T>> for Strict { fn judge(_: &Foreign<T>) -> Verdict { Verdict::permanent("strict") } }
const POINTER: fn(&Foreign<u8>) -> Verdict = generic::<u8>;
#[retry(base_delay = "1ms", classify = generic)]
fn a(n: &Cell<u32>) -> Result<(), Foreign<u8>> { n.set(n.get() + 1); Err(Foreign(1)) }
#[retry(base_delay = "1ms", classify = generic::<T>)]
async fn b<T: PartialOrd + Default>(n: &Cell<u32>, make: impl Fn() -> T) -> Result<(), Foreign<T>> { n.set(n.get() + 1); Err(Foreign(make())) }
#[retry(base_delay = "1ms", classify = <Strict as Judge<Foreign<u8>>>::judge)]
fn c(n: &Cell<u32>) -> Result<(), Foreign<u8>> { n.set(n.get() + 1); Err(Foreign(1)) }
#[retry(base_delay = "1ms", classify = POINTER)]
fn d(n: &Cell<u32>) -> Result<(), GaveUp<Foreign<u8>>> { n.set(n.get() + 1); Err(Foreign(1)) }
#[derive(Classify)]
#[classify(permanent)]
struct S;
impl S {
    fn mine(_: &Foreign<u8>) -> Verdict { Verdict::retryable("mine") }
    #[retry(base_delay = "1ms", classify = Self::mine)]
    fn e(&self, n: &Cell<u32>) -> Result<(), Foreign<u8>> { n.set(n.get() + 1); Err(Foreign(0)) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n = Cell::new(0);
    assert!(a(&n).is_err()); assert_eq!(n.replace(0), 3);
    assert!(b(&n, || 0u64).await.is_err()); assert_eq!(n.replace(0), 1);
    assert!(c(&n).is_err()); assert_eq!(n.replace(0), 1);
    assert!(d(&n).is_err_and(|g| g.attempts() == 3)); assert_eq!(n.replace(0), 3);
    assert!(S.e(&n).is_err()); assert_eq!(n.replace(0), 3);
}
