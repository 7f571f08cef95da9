use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(classify = |_| todo!(), context = &mut ctx, name = fetch)]
fn f() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(sleep = |_| async {}, context = "ctx", name = "")]
async fn g() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(classify = "path::to::function", context = a.b, name = 5, policy = , unknown = "retry")]
fn h() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
