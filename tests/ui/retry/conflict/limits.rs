use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(deadline = "0s")]
fn no_time() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(attempt_timeout = "0ms")]
async fn no_time_for_one() -> Result<u32, retry_runtime::GaveUp<Busy>> {
    Err(Busy)
}

#[retry(attempt_timeout = "1m", deadline = "30s")]
async fn one_longer_than_all() -> Result<u32, retry_runtime::GaveUp<Busy>> {
    Err(Busy)
}

fn main() {}
