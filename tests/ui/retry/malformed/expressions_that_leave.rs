use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

fn seconds() -> Result<std::time::Duration, Busy> {
    Err(Busy)
}

#[retry(base_delay = seconds()?)]
fn question_mark() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = if true { return Err(Busy) } else { 1 })]
fn returns() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(deadline = loop { break seconds().unwrap() })]
fn breaks() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(policy = policy().await)]
async fn awaits() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(name = "x", dead_letter(sink = sink().await, job_id = seconds()?.as_secs(), payload = { return Ok(1) }))]
async fn all_at_once() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(ledger(store = s, key = key()?, scope = scope()?, max_attempts = attempts()?, skipped = Ok(key()?)))]
fn in_the_ledger(s: &u32) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(cancel = token().await)]
async fn awaited() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
