use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

use std::time::Duration;

use retry_runtime::Verdict;

fn not_borrowed(_: Busy) -> Verdict {
    Verdict::retryable("busy")
}

fn of_another(_: &String) -> Verdict {
    Verdict::retryable("busy")
}

fn says_bool(_: &Busy) -> bool {
    true
}

#[retry(classify = not_borrowed)]
fn by_value() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(classify = of_another)]
async fn other_error() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(classify = says_bool)]
fn no_verdict() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(classify = no_such_function)]
fn missing() -> Result<u32, Busy> {
    Err(Busy)
}

fn seconds(n: u32) -> u64 {
    u64::from(n)
}

#[retry(backoff = seconds)]
fn growth() -> Result<u32, Busy> {
    Err(Busy)
}

fn blocks(_: Duration) {}

async fn takes_millis(_: u64) {}

#[retry(sleep = blocks)]
async fn no_future() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(sleep = takes_millis)]
async fn other_argument() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
