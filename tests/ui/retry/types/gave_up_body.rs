use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

use retry_runtime::GaveUp;

fn inner() -> Result<u32, GaveUp<Busy>> {
    todo!()
}

// the body returns the plain error, not the report
#[retry]
fn outer() -> Result<u32, GaveUp<Busy>> {
    inner()
}

fn main() {}
