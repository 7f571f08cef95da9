use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(max_retries = 1)]
#[retry(max_retries = 2)]
fn twice() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry]
#[doc = "between"]
#[retry_runtime::retry]
async fn by_path() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
