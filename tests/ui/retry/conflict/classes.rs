use retry_runtime::{Classify, Policy, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(class(busy, base_delay = "2m"))]
fn above_the_default() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(base_delay = "10s", class(busy, max_delay = "5s"))]
fn below_the_calls() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(policy = Policy::new(), class(busy, max_delay = "5s", base_delay = "10s"))]
fn beside_a_policy() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(max_delay = "5s", class(busy, jitter = "6s"))]
fn too_much_jitter() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class(busy, max_retries = forever))]
fn endless() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
