use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(fallback = 5)]
fn no_result() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(fallback = Ok("text"))]
async fn other_value() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(fallback = Err(error.to_string()))]
async fn other_error() -> Result<u32, Busy> {
    Err(Busy)
}

async fn second() -> Result<u32, Busy> {
    Ok(1)
}

#[retry(fallback = second())]
async fn not_awaited() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(fallback = second().await)]
fn awaited_while_blocking() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(fallback = { let n: u32 = "x".parse()?; Ok(n) })]
fn question_mark() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
