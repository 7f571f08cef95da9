// source: kind 11; what: lints about names of functions and arguments are said once, also where an attempt binds an argument again
// editions: 2021 2024
// level: core
// expect: snake case
// errors: 3
#![deny(non_snake_case)]
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[retry(base_delay = "1ms")]
fn badName( //~ HERE
    mut badArg: u32,
    otherArg: String,
) -> Result<u32, E> {
    badArg += 1;
    if otherArg.is_empty() { Err(E::Busy) } else { Ok(badArg) }
}

fn main() { let _ = badName(1, String::new()); }
