use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(attempts = 3, delay = "1s", timeout = "1s", when = is_busy, factor = 2)]
fn of_other_crates() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_attempts = 3, retry_if(Busy), strategy = fixed, max_elapsed = "1m")]
fn more() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
