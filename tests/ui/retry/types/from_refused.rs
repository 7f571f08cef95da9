use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

use retry_runtime::dead_letter::MemoryStore;

#[retry(ledger(store = store, key = "k"))]
async fn counted(store: &MemoryStore) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(ledger(store = store, key = "k"))]
fn counted_blocking(store: &MemoryStore) -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
