use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

use retry_runtime::RetryContext;

#[retry(context = ctx)]
fn other_type(ctx: &mut u32) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(context = ctx)]
async fn shared(ctx: &RetryContext) -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(context = ctx)]
async fn by_value(ctx: RetryContext) -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
