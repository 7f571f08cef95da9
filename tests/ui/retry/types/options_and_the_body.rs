use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

use retry_runtime::dead_letter::MemoryStore;

struct Job {
    id: String,
}

// what an option borrowed, the body cannot change
#[retry(dead_letter(sink = dlq, job_id = &job.id))]
async fn changed(dlq: &MemoryStore, job: &mut Job) -> Result<u32, Busy> {
    job.id.push('x');
    Err(Busy)
}

struct Client {
    dlq: MemoryStore,
    calls: u32,
}

impl Client {
    #[retry(name = "client.call", dead_letter(sink = &self.dlq))]
    fn call(&mut self) -> Result<u32, Busy> {
        self.calls += 1;
        Err(Busy)
    }
}

fn main() {}
