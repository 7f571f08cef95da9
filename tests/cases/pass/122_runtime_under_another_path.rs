// source: kind 12; what: `crate = ` with a re-export, through macro_rules `$crate`, beside modules called core, std, tokio and retry_runtime
// editions: 2021 2024
// level: core
#![deny(warnings)]

#![allow(dead_code)]
mod rt { pub use ::retry_runtime as inner; }
mod core { pub struct Nothing; }
mod std_ { pub struct Nothing; }
mod tokio_ { pub struct Nothing; }
mod retry_runtime { pub struct Nothing; }
use rt::inner::{Classify, retry, retrying};
use ::std::cell::Cell;

#[derive(Debug, PartialEq, Classify)]
#[classify(crate = crate::rt::inner)]
enum E {
    #[classify(retryable)]
    Busy,
}
#[retry(crate = crate::rt::inner, max_retries = 2, base_delay = "1ms", jitter = full, context = ctx, fallback = Ok(ctx.attempts()))]
async fn f(n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); Err(E::Busy) }
macro_rules! make { ($name:ident) => {
    #[retry(crate = $crate::rt::inner, max_retries = 2, base_delay = "1ms")]
    fn $name(n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy) } else { Ok(3) } }
}; }
make!(g);
fn h(n: &Cell<u32>) -> Result<u32, E> {
    retrying!(crate = crate::rt::inner, base_delay = "1ms"; -> Result<u32, E> { n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy) } else { Ok(3) } })
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(f(&Cell::new(0)).await, Ok(4));
    assert_eq!(g(&Cell::new(0)), Ok(3));
    assert_eq!(h(&Cell::new(0)), Ok(3));
}
