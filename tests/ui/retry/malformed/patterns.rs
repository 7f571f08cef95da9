use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(retry_on(Busy if))]
fn no_guard() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(retry_on(Busy Busy))]
fn no_comma() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(retry_on(Busy::is_odd()), stop_on(+))]
fn no_pattern() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
