use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

macro_rules! tried {
    ($result:expr) => {
        $result?
    };
}

macro_rules! bail {
    () => {
        return Err(Busy)
    };
}

fn delay() -> Result<std::time::Duration, Busy> {
    Err(Busy)
}

// no attempt would run
#[retry(base_delay = tried!(delay()))]
fn question_mark() -> Result<u32, Busy> {
    Ok(1)
}

#[retry(max_retries = if delay().is_err() { bail!() } else { 1 })]
async fn returns() -> Result<u32, Busy> {
    Ok(1)
}

fn main() {}
