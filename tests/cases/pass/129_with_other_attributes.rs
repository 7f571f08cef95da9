// source: kind 15; what: tokio::test-like, instrument above and below, derive-helper order, must_use, inline, track of cfg_attr, and two macros on one function
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

use tracing::instrument;

#[retry(max_retries = 2, base_delay = "1ms")]
#[instrument(skip_all)]
async fn below(n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy)? } Ok(3) }
#[instrument(skip_all)]
#[retry(max_retries = 2, base_delay = "1ms")]
async fn above(n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy)? } Ok(3) }
#[instrument(skip_all)]
#[retry(max_retries = 2, base_delay = "1ms")]
fn blocking(n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); if n.get() < 3 { return Err(E::Busy); } Ok(3) }
struct S(Cell<u32>);
impl S {
    #[retry(max_retries = 2, base_delay = "1ms")]
    #[instrument(skip(self))]
    async fn method(&mut self, by: u32) -> Result<u32, E> { self.0.set(self.0.get() + by); if self.0.get() < 3 { return Err(E::Busy); } Ok(3) }
}

#[tokio::main(flavor = "current_thread")]
#[retry(max_retries = 1, base_delay = "1ms")]
async fn main() -> Result<(), E> {
    assert_eq!(below(&Cell::new(0)).await, Ok(3));
    assert_eq!(above(&Cell::new(0)).await, Ok(3));
    assert_eq!(blocking(&Cell::new(0)), Ok(3));
    assert_eq!(S(Cell::new(0)).method(1).await, Ok(3));
    Ok(())
}
