use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

use std::future::Future;
use std::pin::Pin;

trait Store {
    fn get<'life0, 'async_trait>(&'life0 self) -> Pin<Box<dyn Future<Output = Result<u32, Busy>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait;
}

struct Memory;

impl Store for Memory {
    // what another release of async_trait might write
    #[retry]
    fn get<'life0, 'async_trait>(&'life0 self) -> Pin<Box<dyn Future<Output = Result<u32, Busy>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let future = async move { Err(Busy) };
        Box::pin(future)
    }
}

fn main() {}
