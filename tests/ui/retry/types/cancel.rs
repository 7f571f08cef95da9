use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Other;

impl From<retry_runtime::Refused> for Other {
    fn from(_: retry_runtime::Refused) -> Self {
        Other
    }
}

async fn shutdown() {}

#[retry(cancel = shutdown())]
async fn no_value() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(cancel = shutdown(), fallback = Ok(1))]
async fn no_value_with_a_fallback() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(cancel = 5)]
async fn no_future() -> Result<u32, Other> {
    Err(Other)
}

#[retry(cancel = shutdown)]
async fn not_called() -> Result<u32, Other> {
    Err(Other)
}

fn main() {}
