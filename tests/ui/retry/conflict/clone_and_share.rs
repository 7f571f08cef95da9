use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(clone(log), share(log))]
fn both(mut log: Vec<u8>) -> Result<usize, Busy> {
    log.push(1);
    Ok(log.len())
}

#[retry(share(text))]
fn nothing_to_share(text: String) -> Result<usize, Busy> {
    Ok(text.len())
}

struct Job(u32);

impl Job {
    #[retry(clone(self))]
    fn run(self) -> Result<u32, Busy> {
        Ok(self.0)
    }
}

fn main() {}
