use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(attempt_timeout = "1s")]
async fn limited() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(attempt_timeout = "1s", fallback = Ok(1))]
async fn with_a_fallback() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
