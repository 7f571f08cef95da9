use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

use retry_runtime::dead_letter::MemoryStore;

struct Plain;

#[retry(dead_letter(sink = dlq, payload = plain))]
async fn payload(dlq: &MemoryStore, plain: &Plain) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(dead_letter(sink = dlq, job_id = plain))]
fn job_id(dlq: &MemoryStore, plain: &Plain) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(dead_letter(sink = dlq, model = Plain))]
fn model(dlq: &MemoryStore) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(ledger(store = store, key = plain, scope = Plain, skipped = Ok(0)))]
fn key(store: &MemoryStore, plain: &Plain) -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
