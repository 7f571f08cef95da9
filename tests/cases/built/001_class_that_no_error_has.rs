// source: a class name is text; what: a misspelt one is refused where the derive knows them all, at the name
// editions: 2021 2024
// level: core
// expect: no failure of `FetchError` has the class `rate_limits`: its classes are `busy`, `rate_limit`, `denied`
// expect: no failure of `FetchError` has the class `Busy`
// errors: 2
use retry_runtime::{Classify, retry, retrying};

#[derive(Debug, Classify)]
enum FetchError {
    #[classify(retryable)]
    Busy,
    #[classify(retryable, class = "rate_limit")]
    Limited,
    #[classify(permanent)]
    Denied,
}

#[retry(
    class(busy, max_retries = 1),
    class(rate_limits, max_retries = 5), //~ HERE
)]
fn misspelt() -> Result<u32, FetchError> {
    Err(FetchError::Limited)
}

fn main() {
    let _ = (misspelt(), FetchError::Denied);
    let _ = retrying!(class("Busy", max_retries = 1); -> Result<u32, FetchError> { Err(FetchError::Busy) });
}
