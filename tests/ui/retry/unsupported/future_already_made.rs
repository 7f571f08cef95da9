use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

use std::future::Future;
use std::pin::Pin;

#[retry]
fn implied() -> impl Future<Output = Result<u32, Busy>> {
    async { Err(Busy) }
}

#[retry]
fn boxed() -> Pin<Box<dyn Future<Output = Result<u32, Busy>> + Send>> {
    Box::pin(async { Err(Busy) })
}

type Boxed<'a> = Pin<Box<dyn Future<Output = Result<u32, Busy>> + 'a>>;

#[retry]
fn by_alias<'a>() -> Boxed<'a> {
    Box::pin(async { Err(Busy) })
}

fn main() {}
