use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

struct Plain;

#[retry(ledger(store = plain, key = 1, skipped = Ok(0)))]
async fn asynchronous(plain: &Plain) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(ledger(store = plain, key = 1, skipped = Ok(0)))]
fn blocking(plain: &Plain) -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
