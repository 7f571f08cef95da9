use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

use retry_runtime::GaveUp;

// a function that reports, called by another retried one: `GaveUp` is no `Classify`
#[retry]
fn inner() -> Result<u32, GaveUp<Busy>> {
    Err(Busy)
}

#[retry]
fn outer() -> Result<u32, GaveUp<GaveUp<Busy>>> {
    inner()
}

fn main() {}
