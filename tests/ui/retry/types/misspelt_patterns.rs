use retry_runtime::{Classify, retry};

#[derive(Debug, Clone, PartialEq, Classify)]
enum Cause {
    #[classify(retryable)]
    Reset,
    #[classify(permanent)]
    Refused,
}

#[derive(Debug, Clone, PartialEq, Classify)]
enum ApiError {
    #[classify(retryable)]
    Busy,
    #[classify(transparent)]
    Connect(Cause),
    #[classify(permanent)]
    Status { code: u16, cause: Cause },
}

use ApiError::Busy;
use Cause::Reset;

#[retry(retry_on(Bussy))]
fn bare() -> Result<u32, ApiError> {
    Err(Busy)
}

#[retry(stop_on(Busy | Statsu))]
async fn alternative() -> Result<u32, ApiError> {
    Err(Busy)
}

#[retry(retry_on(ApiError::Connect(Refused)))]
fn nested() -> Result<u32, ApiError> {
    Err(ApiError::Connect(Reset))
}

#[retry(retry_on(ApiError::Status { cause: Refused, .. }))]
async fn in_a_field() -> Result<u32, ApiError> {
    Err(ApiError::Status { code: 1, cause: Reset })
}

#[retry(retry_on(ApiError::Bussy))]
fn by_path() -> Result<u32, ApiError> {
    Err(Busy)
}

#[retry(retry_on(Reset))]
fn of_another_type() -> Result<u32, ApiError> {
    Err(Busy)
}

#[retry(retry_ok(Nothing))]
fn of_the_value() -> Result<Option<u32>, ApiError> {
    Ok(None)
}

fn main() {}
