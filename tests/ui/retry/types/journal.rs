use std::sync::Arc;

use retry_runtime::dead_letter::{DeadLetterSink, MemoryStore};
use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(dead_letter(sink = dlq, journal))]
async fn a_sink_alone(dlq: Arc<dyn DeadLetterSink>) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(dead_letter(sink = dlq, journal = required))]
fn no_value_for_a_refusal(dlq: &MemoryStore) -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
