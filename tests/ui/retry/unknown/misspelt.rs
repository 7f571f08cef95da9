use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(max_retry = 2)]
fn singular() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(baseDelay = "1s", retries = 3, MAX_DELAY = "2s")]
fn other_spellings() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(attemp_timeout = "1s", retry_onn(Busy), dead_leter(sink = x), contxt = c)]
async fn typing_errors() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {
    // the functions are there all the same
    let _ = (singular(), other_spellings(), typing_errors());
}
