// source: kind 12; what: names of generated bindings and of the private module are not in reach of the body and the options
// editions: 2021 2024
// level: core
// expect: cannot find
// errors: 4
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[retry(max_retries = __retry_session, base_delay = "1ms")]
fn a() -> Result<u32, E> {
    let _ = __retry_out; //~ HERE
    let _ = __retry_record; //~ HERE
    Err(E::Busy)
}
#[retry(base_delay = "1ms", fallback = Err(__retry_end.unwrap()))]
async fn b() -> Result<u32, E> { Err(E::Busy) }

fn main() { let _ = (a(), b()); }
