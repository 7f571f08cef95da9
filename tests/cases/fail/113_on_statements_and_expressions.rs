// source: kind 15; what: on a closure, a let or a block: refused by us or by rustc, never a panic
// editions: 2021 2024
// level: core
// expect: expression | statement | function | experimental
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

fn main() {
    #[retry(max_retries = 2)]
    let f = || -> Result<u32, E> { Err(E::Busy) }; //~ HERE
    let _ = f();
}
