use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(backoff = exponential())]
fn none() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(backoff = exponential(2, 3))]
fn two() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(backoff = exponential("2"))]
fn text() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(backoff = exponential(-2.0))]
fn negative() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(backoff = linear(2))]
fn of_another() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(backoff = |n| Duration::from_secs(n))]
fn closure() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
