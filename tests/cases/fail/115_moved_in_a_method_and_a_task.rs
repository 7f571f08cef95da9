// source: kind 6; what: an argument moved into a task, a struct or another call is E0382 naming it
// editions: 2021 2024
// level: core
// expect: E0382
// expect: `body`
// errors: 2
// no-primary-on-attribute
use retry_runtime::{retry, Classify};

#[derive(Debug, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

fn eat(_: String) -> u32 { 1 }
struct S;
impl S {
    #[retry(base_delay = "1ms")]
    async fn a(&self, body: String) -> Result<u32, E> {
        if eat(body) == 0 { Err(E::Busy) } else { Ok(1) }
    }
    #[retry(base_delay = "1ms")]
    fn b(&self, body: String) -> Result<String, E> {
        if body.is_empty() { return Err(E::Busy); }
        Ok(body)
    }
}

fn main() { let _ = (S.a(String::new()), S.b(String::new())); }
