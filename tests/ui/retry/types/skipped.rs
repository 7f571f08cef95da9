use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

use retry_runtime::dead_letter::MemoryStore;

#[retry(ledger(store = store, key = 1, skipped = 5))]
fn no_result(store: &MemoryStore) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(ledger(store = store, key = 1, skipped = Ok(None)))]
async fn other_value(store: &MemoryStore) -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
