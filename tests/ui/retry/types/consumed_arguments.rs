use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

fn eat(_: String) -> u32 {
    1
}

#[retry]
async fn asynchronous(body: String) -> Result<u32, Busy> {
    Ok(eat(body))
}

#[retry]
fn blocking(body: String) -> Result<u32, Busy> {
    let moved = body;
    Ok(eat(moved))
}

#[retry]
async fn in_a_pattern((a, b): (String, u32)) -> Result<u32, Busy> {
    Ok(eat(a) + b)
}

struct Job(String);

impl Job {
    #[retry]
    fn run(self) -> Result<u32, Busy> {
        Ok(eat(self.0))
    }
}

#[retry]
async fn into_a_task(body: String) -> Result<u32, Busy> {
    let task = async move { body.len() };
    task.await;
    Err(Busy)
}

fn main() {}
