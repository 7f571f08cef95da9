//! `observer` without a value, twice, and by the names it has elsewhere.

use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(observer)]
fn no_value() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(observer = &LOG, observer = &LOG)]
fn twice() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(on_retry = log)]
fn a_synonym() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(observers = &LOG)]
fn misspelt() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
