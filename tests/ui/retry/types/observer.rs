//! What is no observer, and what an observer must be able to do.

use retry_runtime::observe::{Event, Observer};
use retry_runtime::{Classify, Policy, Retry, retry, retrying};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(observer = 5)]
async fn a_number() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(observer = |event: &Event<'_>| println!("{event}"))]
fn a_closure() -> Result<u32, Busy> {
    Err(Busy)
}

struct Local(std::cell::Cell<u32>);

impl Observer for Local {
    fn on(&self, _: &Event<'_>) {
        self.0.set(self.0.get() + 1);
    }
}

fn main() {
    let _ = retrying!(observer = "log"; -> Result<u32, Busy> { Err(Busy) });
    let _ = Retry::new(Policy::new()).observer(&5);
}
