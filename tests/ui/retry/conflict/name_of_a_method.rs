use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

struct Client;

impl Client {
    #[retry(dead_letter(sink = dlq))]
    fn parks(&self, dlq: &u32) -> Result<u32, Busy> {
        Err(Busy)
    }

    #[retry(ledger(store = store, key = "k", skipped = Ok(0)))]
    async fn counts(&self, store: &u32) -> Result<u32, Busy> {
        Err(Busy)
    }
}

fn main() {}
