// source: kind 10; what: an unknown type in the signature is one error per place
// editions: 2021 2024
// level: core
// expect: Missing
// expect: cannot find type
// errors: 2
// no-primary-on-attribute
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[retry(base_delay = "1ms")]
async fn a(x: Missing) -> Result<u32, E> { //~ HERE
    let _ = x;
    Err(E::Busy)
}
#[retry(base_delay = "1ms")]
fn b() -> Result<Missing, E> {
    Err(E::Busy)
}

fn main() {}
