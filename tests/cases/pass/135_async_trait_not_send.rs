// source: kind 15; what: #[async_trait(?Send)], and the same words of the user in body and options
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::cast_possible_truncation, clippy::used_underscore_binding)] // our own style below
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

use async_trait::async_trait;
#[async_trait(?Send)]
trait Local { async fn get(&self, n: &Cell<u32>, __x: u32) -> Result<u32, E>; async fn put(&mut self, v: &mut Vec<u32>) -> Result<usize, E>; }
struct S(Cell<u32>);
#[async_trait(?Send)]
impl Local for S {
    #[retry(base_delay = "1ms", max_retries = self.0.get(), retry_on(E::Denied), fallback = Ok(self.0.get() + n.get()))]
    async fn get(&self, n: &Cell<u32>, __x: u32) -> Result<u32, E> { n.set(n.get() + __x); let _ = self.0.get(); Err(E::Denied) }
    #[retry(base_delay = "1ms")]
    async fn put(&mut self, v: &mut Vec<u32>) -> Result<usize, E> { v.push(1); self.0.set(v.len() as u32); if v.len() < 3 { Err(E::Busy)?; } Ok(v.len()) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(S(Cell::new(3)).get(&Cell::new(0), 1).await, Ok(7));
    assert_eq!(S(Cell::new(3)).put(&mut vec![]).await, Ok(3));
}
