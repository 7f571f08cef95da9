use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

struct Job(u32);

impl Job {
    #[retry]
    fn run(mut self) -> Result<u32, Busy> {
        self.0 += 1;
        Ok(self.0)
    }

    #[retry]
    async fn run_boxed(mut self: Box<Self>) -> Result<u32, Busy> {
        self.0 += 1;
        Ok(self.0)
    }
}

fn main() {}
