use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry]
fn nothing() {}

#[retry]
async fn nothing_later() {}

#[retry]
fn unit() -> () {}

#[retry]
fn never() -> ! {
    panic!()
}

fn main() {}
