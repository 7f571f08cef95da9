// source: kind 9; what: `?` on another error type is an error at the expression, in async and blocking
// editions: 2021 2024
// level: core
// expect: E0277 | E0271
// expect: ParseIntError
// errors: 2
// no-primary-on-attribute
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[retry(base_delay = "1ms")]
async fn a(s: &str) -> Result<u32, E> {
    let v: u32 = s.parse::<u32>()?; //~ HERE
    if v == 0 { return Err(E::Busy); }
    Ok(v)
}
#[retry(base_delay = "1ms")]
fn b(s: &str) -> Result<u32, E> {
    let v: u32 = s.parse::<u32>()?; //~ HERE
    Ok(v)
}

fn main() { let _ = (a("1"), b("1")); }
