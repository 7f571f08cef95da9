// source: kind 5; what: `impl Trait` results that capture arguments, types and lifetimes; nested, in tuples, with Send
// editions: 2021 2024
// level: core
#![deny(warnings)]
use retry_runtime::{retry, Classify};
use std::cell::Cell;

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
    #[allow(dead_code)]
    #[classify(permanent)]
    Denied,
}

use std::future::Future;

#[retry(base_delay = "1ms")]
fn lines<'a, T: AsRef<str> + ?Sized>(text: &'a T, n: &Cell<u32>) -> Result<impl Iterator<Item = &'a str> + use<'a, T>, E> {
    n.set(n.get() + 1);
    if n.get() < 3 { return Err(E::Busy); }
    Ok(text.as_ref().lines())
}
#[retry(base_delay = "1ms")]
async fn closure(k: u32) -> Result<impl Fn(u32) -> u32 + Send + 'static, E> { Ok(move |x| x + k) }
#[retry(base_delay = "1ms")]
async fn future(k: u32) -> Result<impl Future<Output = Result<u32, E>> + Send, E> { Ok(async move { Ok(k) }) }
#[retry(base_delay = "1ms")]
async fn nested(words: &[String]) -> Result<Vec<(usize, impl Iterator<Item = char> + '_)>, E> {
    if words.is_empty() { return Err(E::Busy); }
    Ok(words.iter().map(|w| (w.len(), w.chars())).collect())
}
fn send<T: Send>(t: T) -> T { t }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n = Cell::new(0);
    assert_eq!(lines("a\nb", &n).unwrap().count(), 2);
    assert_eq!(send(closure(1)).await.unwrap()(2), 3);
    assert_eq!(send(future(4)).await.unwrap().await, Ok(4));
    assert_eq!(nested(&["ab".into()]).await.unwrap().len(), 1);
}
