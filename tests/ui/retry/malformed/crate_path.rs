use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(crate = retry_runtime)]
fn relative() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(crate = "::retry_runtime")]
fn quoted() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(crate = ::retry_runtime::<u8>)]
fn generic() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(crate = self::retry_runtime)]
fn of_this_module() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
