use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
enum ApiError {
    #[classify(retryable)]
    Busy(u32),
}

#[retry(retry_on("busy"))]
fn text() -> Result<u32, ApiError> {
    Err(ApiError::Busy(1))
}

#[retry(retry_on(ApiError::Busy))]
fn without_its_field() -> Result<u32, ApiError> {
    Err(ApiError::Busy(1))
}

#[retry(retry_on(ApiError::Busy(n) if n))]
fn guard() -> Result<u32, ApiError> {
    Err(ApiError::Busy(1))
}

#[retry(retry_ok(None))]
fn other_value() -> Result<u32, ApiError> {
    Err(ApiError::Busy(1))
}

#[retry(retry_ok(Err(_)))]
fn the_whole_result() -> Result<u32, ApiError> {
    Err(ApiError::Busy(1))
}

fn main() {}
