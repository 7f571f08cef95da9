use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry]
fn f((ref mut a, b): (u32, u32)) -> Result<u32, Busy> {
    *a += 1;
    Ok(*a + b)
}

fn main() {}
