// source: kind 1; what: a macro that hides `?` or `return` in an option expression would leave the function before the first attempt: refused
// editions: 2021 2024
// level: core
// expect: ? | E0277 | E0308 | mismatched | cannot
// errors: <=3
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

macro_rules! tried { ($e:expr) => { $e? }; }
macro_rules! bail { ($e:expr) => { return Err($e) }; }
fn delay() -> Result<std::time::Duration, E> { Err(E::Busy) }

#[retry(base_delay = tried!(delay()))] //~ HERE
fn a() -> Result<u32, E> { Ok(1) }
#[retry(max_retries = if delay().is_err() { bail!(E::Busy) } else { 1 })] //~ HERE
async fn b() -> Result<u32, E> { Ok(1) }

fn main() { let _ = (a(), b()); }
