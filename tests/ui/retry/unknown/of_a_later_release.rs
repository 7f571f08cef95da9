use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(
    class("rate_limit", max_retries = 9),
    budget = &BUDGET,
    breaker = &BREAKER,
    observer = &LOG,
    cancel = token.cancelled(),
    nested = detect,
    dead_letter(sink = dlq, journal),
)]
async fn f(dlq: &Dlq) -> Result<u32, Busy> {
    Err(Busy)
}

struct Dlq;

fn main() {}
