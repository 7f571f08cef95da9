//! A fallback in which `error` stands for something else gives no warning of a variable that nobody wrote.
#![deny(warnings)]
#![allow(clippy::items_after_statements)] // the fallback's own `use`

use retry_runtime::{Classify, retry};

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
    #[classify(permanent)]
    Other,
}

struct Reply {
    error: u8,
}

mod error {
    pub(super) const fn number() -> u8 {
        4
    }
}

fn busy() -> Result<u8, E> {
    Err(E::Busy)
}

#[retry(max_retries = 0, fallback = { let r = Reply { error: 1 }; Ok(r.error) })]
fn a_field() -> Result<u8, E> {
    busy()
}

#[retry(max_retries = 0, fallback = { let error = 2; Ok(error) })]
fn shadowed() -> Result<u8, E> {
    busy()
}

#[retry(max_retries = 0, fallback = { use std::error::Error as _; let _ = std::io::Error::other("x").source(); Err(E::Other) })]
async fn a_trait() -> Result<u8, E> {
    busy()
}

#[retry(max_retries = 0, fallback = Ok(error::number()))]
async fn a_module() -> Result<u8, E> {
    busy()
}

#[retry(max_retries = 0, fallback = Err(error))]
async fn itself() -> Result<u8, E> {
    busy()
}

#[tokio::test]
async fn they_compile_without_a_warning_and_run() {
    assert_eq!((a_field(), shadowed(), a_module().await), (Ok(1), Ok(2), Ok(4)));
    assert_eq!((a_trait().await, itself().await), (Err(E::Other), Err(E::Busy)));
}
