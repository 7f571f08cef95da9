use retry_runtime::{GaveUp, retry};

struct Plain;

#[retry]
fn blocking() -> Result<u32, Plain> {
    Err(Plain)
}

#[retry]
async fn asynchronous() -> Result<u32, Plain> {
    Err(Plain)
}

#[retry]
fn reported() -> Result<u32, GaveUp<Plain>> {
    Err(Plain)
}

#[retry(max_retries = 1, deadline = "1s", retry_on(_), fallback = Ok(1))]
async fn with_options() -> Result<u32, Plain> {
    Err(Plain)
}

#[retry]
fn boxed() -> Result<u32, Box<Plain>> {
    Err(Box::new(Plain))
}

#[retry]
fn generic<E>(error: impl Fn() -> E) -> Result<u32, E> {
    Err(error())
}

fn main() {}
