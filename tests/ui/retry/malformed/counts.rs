use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(max_retries = -1)]
fn negative() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = 99999999999)]
fn large() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = "3")]
fn text() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = 2.5)]
fn fraction() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = 3u64)]
fn other_type() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(ledger(store = s, key = 1, max_attempts = -3, skipped = Ok(1)))]
fn in_the_ledger(s: &u32) -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
