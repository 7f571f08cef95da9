// source: kind 6; what: an option that borrows what the body changes is an error at the option or the argument, never a silent copy
// editions: 2021 2024
// level: core
// expect: E0500 | E0502 | E0506 | borrow
// errors: 1
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

use retry_runtime::dead_letter::MemoryStore;
struct Job { id: String }
#[retry(base_delay = "1ms", dead_letter(sink = dlq, job_id = &job.id))]
fn a(dlq: &MemoryStore, job: &mut Job) -> Result<u32, E> { //~ HERE
    job.id.push('x');
    Err(E::Busy)
}

fn main() { let _ = a(&MemoryStore::new(), &mut Job { id: String::new() }); }
