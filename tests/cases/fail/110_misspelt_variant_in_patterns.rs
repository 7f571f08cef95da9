// source: kind 1, 9; what: a misspelt or unimported variant never matches everything: an error at the name, at any depth
// editions: 2021 2024
// level: core
// expect: Bussy
// expect: Refsued
// errors: 3
// no-primary-on-attribute
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[derive(Debug)]
enum Cause { Refused }
#[derive(Debug, Classify)]
enum Outer { #[classify(permanent)] Inner(Cause), #[classify(permanent)] Busy }
#[retry(
    retry_on(Bussy), //~ HERE
)]
fn a() -> Result<u32, Outer> { Err(Outer::Busy) }
#[retry(
    retry_on(Outer::Inner(Refsued)), //~ HERE
)]
async fn b() -> Result<u32, Outer> { Err(Outer::Inner(Cause::Refused)) }
#[retry(
    retry_ok(Nothing), //~ HERE
)]
fn c() -> Result<Option<u32>, E> { Err(E::Busy) }

fn main() { let _ = (a(), b(), c()); }
