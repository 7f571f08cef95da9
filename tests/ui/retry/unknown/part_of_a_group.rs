use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(dead_letter(sinc = dlq, jobid = 1, payloads = 2, kind = "x", queue = q))]
fn letter() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(ledger(stor = l, id = 1, max_attempt = 3, skip = Ok(1)))]
fn ledger() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
