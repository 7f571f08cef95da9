use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(max_retries = forever)]
fn without_end() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = forever, base_delay = "0s", deadline = "1h")]
fn spins() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = forever, base_delay = "0ms")]
fn both() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
