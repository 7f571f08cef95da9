use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(max_retries = 2 base_delay = "1s")]
fn missing() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = 2; base_delay = "1s")]
fn semicolon() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = 2,, base_delay = "1s")]
fn doubled() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(, max_retries = 2)]
fn leading() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(clone(a b), name = "f")]
fn in_a_list(a: u32, b: u32) -> Result<u32, Busy> {
    Ok(a + b)
}

#[retry(dead_letter(sink = a job_id = 1), name = "f")]
fn in_a_group(a: &u32) -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
