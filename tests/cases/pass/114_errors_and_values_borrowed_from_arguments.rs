// source: kind 5, 6; what: E and T borrow from the arguments, with report, patterns, fallback and a classifier of its own
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

use retry_runtime::{GaveUp, Verdict};

#[derive(Debug, PartialEq, Classify)]
enum Bad<'a> {
    #[classify(retryable)]
    At(&'a str, usize),
    #[classify(permanent)]
    Empty,
}
#[retry(base_delay = "1ms", stop_on(Bad::At(text, _) if text.len() > 5))]
async fn f<'a>(text: &'a str, n: &Cell<u32>) -> Result<&'a str, Bad<'a>> {
    n.set(n.get() + 1);
    if text.is_empty() { return Err(Bad::Empty); }
    if n.get() < 3 { Err(Bad::At(&text[..1], 0)) } else { Ok(&text[1..]) }
}
#[retry(base_delay = "1ms")]
fn g<'a>(text: &'a str, n: &Cell<u32>) -> Result<(), GaveUp<Bad<'a>>> { n.set(n.get() + 1); Err(Bad::At(text, 1)) }
#[retry(base_delay = "1ms", fallback = match error { Bad::At(text, _) => Ok(text), other => Err(other) })]
async fn h<'a>(text: &'a str) -> Result<&'a str, Bad<'a>> { Err(Bad::At(text, 2)) }
struct Own<'a>(&'a str);
fn own(error: &Own<'_>) -> Verdict { if error.0.is_empty() { Verdict::permanent("empty") } else { Verdict::retryable("own") } }
#[retry(base_delay = "1ms", classify = own)]
async fn i<'a>(text: &'a str, n: &Cell<u32>) -> Result<(), Own<'a>> { n.set(n.get() + 1); Err(Own(text)) }
struct Client { name: String }
impl Client {
    #[retry(base_delay = "1ms")]
    async fn name(&self, n: &Cell<u32>) -> Result<&str, Bad<'_>> { n.set(n.get() + 1); if n.get() < 3 { Err(Bad::At(&self.name, 3)) } else { Ok(&self.name) } }
    #[retry(base_delay = "1ms")]
    fn read_only(&mut self, n: &Cell<u32>) -> Result<&str, E> { n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy) } else { Ok(&self.name) } }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (n, text) = (Cell::new(0), String::from("abc"));
    assert_eq!(f(&text, &n).await, Ok("bc"));
    assert_eq!(f("", &n).await, Err(Bad::Empty));
    n.set(0);
    assert_eq!(g(&text, &n).unwrap_err().into_last(), Some(Bad::At("abc", 1)));
    assert_eq!(h(&text).await, Ok("abc"));
    n.set(0);
    assert_eq!(i(&text, &n).await.map_err(|e| e.0), Err("abc"));
    assert_eq!(n.replace(0), 3);
    let mut c = Client { name: "x".into() };
    assert_eq!(c.name(&n).await, Ok("x"));
    n.set(0);
    assert_eq!(c.read_only(&n), Ok("x"));
}
