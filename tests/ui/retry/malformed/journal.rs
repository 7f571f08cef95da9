use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(dead_letter(sink = dlq, journal = true))]
fn a_flag(dlq: &MemoryStore) -> Result<u32, Busy> {
    let _ = dlq;
    Err(Busy)
}

#[retry(dead_letter(sink = dlq, journal = dlq))]
fn a_store(dlq: &MemoryStore) -> Result<u32, Busy> {
    let _ = dlq;
    Err(Busy)
}

#[retry(dead_letter(sink = dlq, journal, journal))]
fn twice(dlq: &MemoryStore) -> Result<u32, Busy> {
    let _ = dlq;
    Err(Busy)
}

#[retry(journal)]
fn outside() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(dead_letter(sink = dlq, journal(required)))]
fn in_brackets(dlq: &MemoryStore) -> Result<u32, Busy> {
    let _ = dlq;
    Err(Busy)
}

fn main() {}
