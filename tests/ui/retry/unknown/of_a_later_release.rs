use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(
    dead_letter(sink = dlq, journal),
)]
async fn f(dlq: &Dlq) -> Result<u32, Busy> {
    Err(Busy)
}

struct Dlq;

fn main() {}
