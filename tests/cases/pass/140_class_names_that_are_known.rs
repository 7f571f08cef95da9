// source: a check of class names; what: no name is refused that some failure may have
// editions: 2021 2024
// level: core
#![deny(warnings)]
use retry_runtime::{Classify, Elapsed, GaveUp, Verdict, retry};

#[derive(Debug, Classify)]
#[allow(dead_code)]
enum FetchError {
    #[classify(retryable)]
    Busy,
    #[classify(retryable, class = "rate_limit")]
    Limited(Elapsed),
}

impl From<Elapsed> for FetchError {
    fn from(elapsed: Elapsed) -> Self {
        Self::Limited(elapsed)
    }
}

#[derive(Debug, Classify)]
#[allow(dead_code)]
enum Outer {
    #[classify(transparent)]
    Inner(FetchError),
    #[classify(status = 0)]
    Status(u16),
}

type Alias<T> = Result<T, GaveUp<FetchError>>;

#[retry(class(busy, max_retries = 1), class("rate_limit", base_delay = "1s"), class(timeout, max_retries = 0), attempt_timeout = "5s")]
async fn known() -> Alias<u32> {
    Ok(1)
}

#[retry(class(anything, max_retries = 1))]
fn open() -> Result<u32, Outer> {
    Err(Outer::Status(500)).or(Err(Outer::Inner(FetchError::Busy)))
}

#[retry(class(anything, max_retries = 1))]
fn generic<E: Classify>(error: E) -> Result<u32, E>
where
    E: Clone,
{
    Err(error.clone())
}

fn verdict(_: &String) -> Verdict {
    Verdict::permanent("x")
}

#[retry(classify = verdict, class(anything, max_retries = 1))]
fn classified() -> Result<u32, String> {
    Ok(1)
}

#[retry(class(busy, max_retries = 1))]
fn hidden() -> Result<impl Copy, FetchError> {
    Ok(1)
}

#[retry(class(busy, max_retries = 1), retry_ok(3), class(rejected_value, max_retries = 0))]
fn boxed() -> Result<u32, Box<FetchError>> {
    Ok(1)
}

fn main() {
    #[derive(Clone, Debug, Classify)]
    #[classify(permanent)]
    struct No;
    drop(known());
    assert!(open().is_err() && generic(No).is_err() && classified().is_ok() && hidden().is_ok() && boxed().is_ok());
    let _ = FetchError::Limited;
}
