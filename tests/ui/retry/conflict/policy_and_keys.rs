use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

static POLICY: retry_runtime::Policy = retry_runtime::Policy::new();

#[retry(
    policy = &POLICY,
    max_retries = 3,
    base_delay = "1s",
    max_delay = "2s",
    backoff = linear,
    jitter = full,
    max_retry_after = "1m",
    deadline = "1h",
)]
fn f() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
