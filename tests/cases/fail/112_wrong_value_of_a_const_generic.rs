// source: kind 9; what: type errors of option expressions lie on the expression, not on the attribute as a whole
// editions: 2021 2024
// level: core
// expect: E0308
// errors: 3
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[retry(
    max_retries = "x".len(), //~ HERE
)]
fn a() -> Result<u32, E> { Err(E::Busy) }
#[retry(
    base_delay = 5u64 * 2, //~ HERE
)]
fn b() -> Result<u32, E> { Err(E::Busy) }
#[retry(
    fallback = Ok("x"), //~ HERE
)]
async fn c() -> Result<u32, E> { Err(E::Busy) }

fn main() { let _ = (a(), b(), c()); }
