use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct E;

#[retry(jitter = "full", backoff = "linear")]
fn quoted() -> Result<(), E> {
    Err(E)
}

#[retry(max_retries: 3)]
fn colon() -> Result<(), E> {
    Err(E)
}

#[retry(dead_letter(dlq))]
fn bare(dlq: &retry_runtime::dead_letter::MemoryStore) -> Result<(), E> {
    Err(E)
}

#[retry(ledger(store = store, key = 1, max_attempts = 0, skipped = Ok(())))]
fn never(store: &retry_runtime::dead_letter::MemoryStore) -> Result<(), E> {
    Err(E)
}

fn main() {}
