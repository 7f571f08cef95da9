use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(base_delay = "5", max_delay = "", deadline = "5 parsecs", max_retry_after = "-1s", jitter = "s")]
fn texts() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(base_delay = 5, max_delay = 1.5, deadline = -1, jitter = true, max_retry_after = 'x')]
fn other_literals() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(attempt_timeout = "99999999999999999999h", base_delay = "1..5s", max_delay = "1sec")]
async fn more() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
