use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry]
fn blocking(mut log: Vec<u32>) -> Result<usize, Busy> {
    log.push(1);
    Ok(log.len())
}

#[retry]
async fn in_a_pattern((a, mut b): (u32, String)) -> Result<usize, Busy> {
    b.push('x');
    Ok(b.len() + a as usize)
}

#[retry]
async fn generic<T: Default>(mut value: T) -> Result<T, Busy> {
    Ok(std::mem::take(&mut value))
}

#[retry]
fn closure(mut next: impl FnMut() -> u32) -> Result<u32, Busy> {
    Ok(next())
}

fn main() {}
