use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

struct Plain;

fn eat(_: Plain) {}

#[retry(clone(plain))]
fn blocking(plain: Plain) -> Result<u32, Busy> {
    eat(plain);
    Ok(1)
}

#[retry(clone(value))]
async fn generic<T>(value: T) -> Result<u32, Busy> {
    drop(value);
    Ok(1)
}

fn main() {}
