use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry]
const fn f() -> Result<u32, Busy> {
    Err(Busy)
}

struct Client;

impl Client {
    #[retry]
    pub const unsafe fn g(&self) -> Result<u32, Busy> {
        Err(Busy)
    }
}

fn main() {}
