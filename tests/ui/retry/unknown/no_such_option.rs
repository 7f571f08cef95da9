use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(colour = "red")]
fn f() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
