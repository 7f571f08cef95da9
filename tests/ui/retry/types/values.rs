use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(max_retries = retries)]
fn count(retries: u64) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(base_delay = seconds, max_delay = "1h".to_owned(), deadline = None)]
fn delays(seconds: u64) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(attempt_timeout = 5 * 2)]
async fn limit() -> Result<u32, retry_runtime::GaveUp<Busy>> {
    Err(Busy)
}

#[retry(backoff = exponential(factor))]
fn factor(factor: f32) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(jitter = extra)]
fn jitter(extra: u32) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(policy = 5)]
fn policy() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(policy = &Busy)]
fn policy_by_reference() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = undefined_name)]
fn unknown_name() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
