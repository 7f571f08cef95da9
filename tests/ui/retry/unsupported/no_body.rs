use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

trait Store {
    #[retry]
    fn get(&self) -> Result<u32, Busy>;

    #[retry(max_retries = 3)]
    async fn load(&self) -> Result<u32, Busy>;
}

unsafe extern "C" {
    #[retry]
    fn foreign() -> u32;
}

fn main() {}
