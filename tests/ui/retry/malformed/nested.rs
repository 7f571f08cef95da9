use retry_runtime::{Classify, retry, retrying};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(nested)]
async fn no_value() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(nested = "outer_only")]
async fn in_quotes() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(nested = inner_only)]
fn no_such_word() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(nested = true, nested = detect, nested = outer_only)]
fn thrice() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(nestd = detect)]
fn misspelt() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {
    let _ = retrying!(nested(detect); -> Result<u32, Busy> { Err(Busy) });
}
