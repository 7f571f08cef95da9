use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(max_retries)]
fn bare() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = , base_delay =)]
fn nothing_behind() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries: 3)]
fn colon() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries == 3)]
fn comparison() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries(3), base_delay("1s"))]
fn parentheses() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(retry_on = Busy, clone = x, dead_letter = sink)]
fn no_parentheses(x: u32) -> Result<u32, Busy> {
    Ok(x)
}

#[retry(dead_letter(sink, job_id =), name = "f")]
fn in_a_group() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
