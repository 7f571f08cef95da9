// source: kind 5; what: boxes to dyn, arrays to slices, closures and functions to pointers, references to dyn: coerced where the return type says so
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::ptr_arg)] // our own style below
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

use std::fmt::Display;

#[retry(base_delay = "1ms")]
async fn boxed(n: &Cell<u32>) -> Result<Box<dyn Display>, E> {
    n.set(n.get() + 1);
    if n.get() < 2 { return Err(E::Busy); }
    if n.get() == 2 { Ok(Box::new("two")) } else { Ok(Box::new(3)) }
}
#[retry(base_delay = "1ms")]
fn slice(long: bool) -> Result<&'static [u32], E> { if long { Ok(&[1, 2, 3]) } else { Ok(&[]) } }
#[retry(base_delay = "1ms")]
fn pointer(twice: bool) -> Result<fn(u32) -> u32, E> { if twice { return Ok(|x| x * 2); } Ok(std::convert::identity) }
#[retry(base_delay = "1ms")]
async fn borrowed(x: &u32) -> Result<&dyn Display, E> { Ok(x) }
#[retry(base_delay = "1ms")]
async fn deref(x: &String) -> Result<&str, E> { if x.is_empty() { return Err(E::Busy); } Ok(x) }
#[retry(base_delay = "1ms")]
async fn wide(x: u8) -> Result<(u64, Option<Box<[u8]>>), E> { Ok((x.into(), Some(Box::new([x])))) }
#[retry(base_delay = "1ms")]
fn never(x: u32) -> Result<std::convert::Infallible, E> { if x > 0 { Err(E::Denied) } else { std::process::exit(1) } }
#[retry(base_delay = "1ms")]
async fn parsed<T: std::str::FromStr>(s: &str) -> Result<T, E> where T::Err: std::fmt::Debug { s.parse().map_err(|_| E::Busy) }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(boxed(&Cell::new(0)).await.unwrap().to_string(), "two");
    assert_eq!(slice(true), Ok(&[1, 2, 3][..]));
    assert_eq!(pointer(true).unwrap()(2), 4);
    assert_eq!(borrowed(&1).await.unwrap().to_string(), "1");
    assert_eq!(deref(&"x".into()).await, Ok("x"));
    assert_eq!(wide(1).await.unwrap().0, 1);
    assert!(never(1).is_err());
    assert_eq!(parsed::<u8>("7").await, Ok(7));
}
