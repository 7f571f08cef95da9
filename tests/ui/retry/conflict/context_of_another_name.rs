use retry_runtime::{Classify, RetryContext, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct E;

#[retry(context = ctx)]
async fn another_name(context: &mut RetryContext) -> Result<(), E> {
    Err(E)
}

#[retry(context = context)]
async fn shared(context: &RetryContext) -> Result<(), E> {
    Err(E)
}

fn main() {}
