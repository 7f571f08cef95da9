// source: kind 11; what: the result of a retried call, and of calls inside the body, must be used; the attribute must_use and deprecated live on
// editions: 2021 2024
// level: core
// expect: must be used
// expect: deprecated
// errors: <=5
#![deny(unused_must_use, deprecated)]
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[must_use = "the reply counts"]
#[retry(base_delay = "1ms")]
async fn later() -> Result<u32, E> { Ok(1) }
#[deprecated]
#[retry(base_delay = "1ms")]
fn now() -> Result<u32, E> {
    Err::<u32, E>(E::Busy).map(|v| v + 1);
    Ok(1)
}

fn main() {
    later(); //~ HERE
    now();
}
