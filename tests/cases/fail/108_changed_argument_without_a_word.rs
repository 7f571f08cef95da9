// source: kind 6; what: a `mut` argument that is not Copy: refused at the argument with both ways out, in patterns and methods too
// editions: 2021 2024
// level: core
// expect: clone(
// expect: share(
// errors: 3
// no-primary-on-attribute
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[retry(base_delay = "1ms")]
async fn a(
    mut log: Vec<u32>, //~ HERE
) -> Result<usize, E> {
    log.push(1);
    Err(E::Busy)
}
#[retry(base_delay = "1ms")]
fn b((_, mut text): (u32, String)) -> Result<usize, E> {
    text.push('x');
    Err(E::Busy)
}
struct S(u32);
impl S {
    #[retry(base_delay = "1ms")]
    fn c(mut self) -> Result<u32, E> { self.0 += 1; Err(E::Busy) }
}

fn main() { let _ = (a(vec![]), b((1, String::new())), S(1).c()); }
