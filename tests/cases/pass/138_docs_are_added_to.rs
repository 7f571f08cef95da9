// source: kind 11; what: the Retries section is added where there are docs, under every doc lint; expressions and unusual docs included
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::mixed_attributes_style, clippy::missing_errors_doc)] // our own style below
use retry_runtime::{retry, Classify};
use std::cell::Cell;

#[allow(missing_docs)]
#[derive(Debug, PartialEq, Classify)]
/// E
pub enum E {
    #[classify(retryable)]
    Busy,
    #[allow(dead_code)]
    #[classify(permanent)]
    Denied,
}

/// Fetches.
#[retry(max_retries = 2, base_delay = "1ms")]
pub fn a() -> Result<u32, E> { Ok(1) }
/** Fetches.

Text. */
#[retry(max_retries = limit, base_delay = "1ms", deadline = std::time::Duration::from_secs(1))]
pub fn b(limit: u32) -> Result<u32, E> { Ok(1) }
#[retry(policy = retry_runtime::Policy::new())]
#[doc = include_str!("../README.md")]
#[doc(hidden)]
pub fn c() -> Result<u32, E> { Ok(1) }
#[retry(max_retries = forever, base_delay = "1ms", deadline = "1h")]
/// Fetches `x`.
pub async fn d() -> Result<u32, E> {
    //! More.
    Ok(1)
}

#[tokio::main(flavor = "current_thread")]
async fn main() { assert_eq!((a(), b(1), c(), d().await), (Ok(1), Ok(1), Ok(1), Ok(1))); let _ = Cell::new(0); }
