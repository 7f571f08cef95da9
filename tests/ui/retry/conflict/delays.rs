use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(base_delay = "10s", max_delay = "5s")]
fn max_below_base() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(base_delay = "2m")]
fn base_above_the_default() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_delay = "500ms")]
fn max_below_the_default() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(base_delay = "1s", max_delay = "10s", jitter = "11s")]
fn jitter_above_max() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(backoff = exponential(0.5))]
fn shrinking() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
