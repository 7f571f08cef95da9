use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(dead_letter(sink = a, job_id = 1, sink = b), name = "f")]
fn letter(a: &u32, b: &u32) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(ledger(store = a, key = 1, key = 2))]
fn ledger(a: &u32) -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
