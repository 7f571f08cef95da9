// source: kind 11; what: an argument that the body does not use is reported as in a plain function, `mut` ones once each
// editions: 2021 2024
// level: core
// expect: unused variable
// errors: 2
#![deny(unused_variables)]
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[retry(base_delay = "1ms")]
async fn a(x: u32) -> Result<u32, E> { //~ HERE
    Err(E::Busy)
}
#[retry(base_delay = "1ms")]
fn b((p, q): (u32, u32)) -> Result<u32, E> { //~ HERE
    if p == 0 { Err(E::Busy) } else { Ok(p) }
}

fn main() { let _ = (a(1), b((1, 2))); }
