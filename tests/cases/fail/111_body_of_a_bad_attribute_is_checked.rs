// source: kind 10; what: a bad option and a mistake in the body are both said, and nothing else; the new context and the report do not add errors
// editions: 2021 2024
// level: core
// expect: max_retries
// expect: E0308
// errors: 3
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

use retry_runtime::GaveUp;
#[retry(
    max_retry = 2, //~ HERE
    context = ctx,
)]
async fn a() -> Result<u32, GaveUp<E>> {
    if ctx.attempts() == 0 { return Err(E::Busy); }
    Ok(1)
}
#[retry(
    max_retry = 2, //~ HERE
)]
fn b() -> Result<u32, E> {
    let x: String = 5;
    Err(E::Busy)
}

fn main() { let _ = (a(), b()); }
