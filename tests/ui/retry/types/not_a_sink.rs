use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

struct Plain;

#[retry(dead_letter(sink = plain))]
async fn asynchronous(plain: &Plain) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(dead_letter(sink = std::sync::Arc::new(Plain)))]
fn blocking() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
