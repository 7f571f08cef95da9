use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry]
fn plain(x: u32) -> u32 {
    x
}

#[retry]
async fn option(x: Option<u32>) -> Option<u32> {
    x
}

type Pair<T> = (T, u8);

#[retry(max_retries = 2)]
fn alias() -> Pair<u32> {
    (1, 1)
}

#[retry(fallback = Ok(1))]
fn with_a_fallback() -> u32 {
    1
}

#[retry(classify = busy)]
fn with_a_classifier() -> u32 {
    1
}

fn busy(_: &Busy) -> retry_runtime::Verdict {
    retry_runtime::Verdict::retryable("busy")
}

fn main() {}
