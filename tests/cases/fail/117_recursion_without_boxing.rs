// source: kind 14; what: an async function that calls itself is E0733 as without the attribute
// editions: 2021 2024
// level: core
// expect: E0733 | recursion
// errors: 1
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[retry(base_delay = "1ms")]
async fn down(depth: u32) -> Result<u32, E> { //~ HERE
    if depth == 0 { return Err(E::Busy); }
    down(depth - 1).await
}

fn main() { let _ = down(1); }
