// source: kind 2, 9; what: a body that holds an Rc across an await makes the future not Send, and the message names the Rc
// editions: 2021 2024
// level: core
// expect: Rc
// expect: Send
// errors: 1
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

#[retry(base_delay = "1ms")]
async fn a() -> Result<u32, E> {
    let rc = std::rc::Rc::new(1);
    tokio::task::yield_now().await;
    if *rc == 0 { Err(E::Busy) } else { Ok(*rc) }
}

fn main() {
    tokio::spawn(async { a().await.is_ok() }); //~ HERE
}
