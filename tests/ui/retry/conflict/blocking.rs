use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

async fn nap(_: std::time::Duration) {}

#[retry(attempt_timeout = "1s", sleep = nap)]
fn f() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(cancel = std::future::ready(()))]
fn cancelled() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
