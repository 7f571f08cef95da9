use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(3)]
fn number() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry("1s")]
fn text() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(3, "1s", max_retries = 2)]
fn several() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry = 3]
fn value() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
