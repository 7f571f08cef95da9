use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(max_retries = 1, base_delay = "1s", max_retries = 2, base_delay = "2s")]
fn values() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(retry_on(Busy), retry_on(_), clone(x), clone(y), name = "a", name = "b")]
fn lists(x: u32, y: u32) -> Result<u32, Busy> {
    Ok(x + y)
}

#[retry(max_retries = 1, max_retries = 2, max_retries = 3)]
fn three() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
