use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(clone(x, x), share(y, y))]
fn f(x: String, mut y: Vec<u8>) -> Result<usize, Busy> {
    y.push(1);
    Ok(x.len())
}

fn main() {}
