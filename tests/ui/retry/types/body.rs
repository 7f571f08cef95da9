use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry]
async fn tail() -> Result<String, Busy> {
    Ok("text")
}

#[retry]
fn forgotten() -> Result<u32, Busy> {
    Ok(1);
}

#[retry(attempt_timeout = "1s")]
async fn limited() -> Result<String, retry_runtime::GaveUp<Busy>> {
    Ok(5)
}

#[retry]
fn question_mark() -> Result<u32, Busy> {
    Ok("5".parse()?)
}

#[retry]
async fn outer_loop() -> Result<u32, Busy> {
    break;
}

fn main() {}
