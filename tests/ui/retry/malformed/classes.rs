use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(class())]
fn empty() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class = "busy")]
fn no_list() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class(max_retries = 5))]
fn no_name() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class(Busy::CLASS, max_retries = 5))]
fn path() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class("rate limit", max_retries = 5))]
fn no_word() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class(busy))]
fn says_nothing() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class(busy, 5))]
fn number() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class(busy, deadline = "5s"), class(other, max_retrys = 5))]
fn other_keys() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class(busy, max_retries = 5), class("busy", base_delay = "1s"))]
fn twice() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class(busy, max_retries = 5, max_retries = 6))]
fn key_twice() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(class(busy, max_retries = -1, base_delay = 5, jitter = "full"))]
fn values() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
