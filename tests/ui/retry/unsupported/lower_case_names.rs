use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(retry_on(error), stop_on(busy | denied), retry_ok(value))]
fn f() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
