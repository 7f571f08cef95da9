// source: kind 9; what: `.await` in a blocking retried function is one error at the await
// editions: 2021 2024
// level: core
// expect: await
// errors: 1
// no-primary-on-attribute
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

async fn get() -> Result<u32, E> { Err(E::Busy) }
#[retry(base_delay = "1ms")]
fn a() -> Result<u32, E> {
    let v = get()
        .await?; //~ HERE
    Ok(v)
}

fn main() { let _ = a(); }
