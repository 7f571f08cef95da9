use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(backoff = exponentail)]
fn growth() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(backoff = constant)]
fn constant() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(backoff = "linear")]
fn quoted() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(jitter = ful)]
fn random() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(jitter = "full")]
fn quoted_jitter() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(unknown = ignore)]
fn undecided() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = infinite)]
fn endless() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_retries = Forever, deadline = "1h")]
fn capital() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(idempotent = no)]
fn twice() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(idempotent = "false")]
fn quoted_bool() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
