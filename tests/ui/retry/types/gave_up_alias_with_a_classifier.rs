use retry_runtime::{GaveUp, Verdict, retry};

struct Plain;
type Report<T> = Result<T, GaveUp<Plain>>;

fn by_hand(_: &Plain) -> Verdict {
    Verdict::retryable("plain")
}

// with `classify` the report must be written out
#[retry(classify = by_hand)]
fn f() -> Report<u32> {
    Err(Plain)
}

fn main() {}
