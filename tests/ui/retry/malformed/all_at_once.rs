use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(
    3,
    max_retry = 2,
    base_delay = "5",
    max_delay = "1s", max_delay = "2s",
    backoff = exponentail,
    jitter = ful,
    deadline = "0s",
    attempt_timeout = "1s",
    retry_on(busy),
    clone(y),
    dead_letter(job_id = 1, journal),
    ledger(key = 1),
    context = 5,
)]
fn f(x: u32) -> Result<u32, Busy> {
    Ok(x)
}

fn main() {
    // the function is there all the same
    let _ = f(1);
}
