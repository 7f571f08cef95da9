use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(retry_on(), stop_on(), retry_ok(), clone(), share(), dead_letter(), ledger())]
fn f() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
