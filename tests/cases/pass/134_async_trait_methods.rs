// source: kind 15; what: methods under #[async_trait]: every receiver, mut and pattern arguments, generics, defaults, fallback, context and dead letter
// editions: 2021 2024
// level: hard
#![deny(warnings)]
use retry_runtime::{retry, Classify};

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
    #[allow(dead_code)]
    #[classify(permanent)]
    Denied,
}

use async_trait::async_trait;
use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::RetryContext;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::Arc;

struct S { n: AtomicU32, m: u32, dlq: Arc<MemoryStore> }
fn s() -> S { S { n: AtomicU32::new(0), m: 0, dlq: Arc::new(MemoryStore::new()) } }
impl S { fn go(&self) -> Result<u32, E> { if self.n.fetch_add(1, SeqCst) < 2 { Err(E::Busy) } else { Ok(3) } } }

#[async_trait]
trait Store: Send + Sync {
    async fn by_ref(&self, key: &str) -> Result<u32, E>;
    async fn by_mut(&mut self, by: u32) -> Result<u32, E>;
    async fn by_arc(self: Arc<Self>, pair: (u32, u32)) -> Result<u32, E>;
    async fn generic<T: AsRef<str> + Send + Sync + Clone>(&self, t: T) -> Result<usize, E> where Self: Sized;
    async fn fallback(&mut self, text: String, ctx: &mut RetryContext) -> Result<String, E>;
    async fn letter(&mut self, key: String, pair: (u32, u32)) -> Result<u32, E>;
    #[retry(base_delay = "1ms")]
    async fn default(&self, mut x: u32) -> Result<u32, E> { x += 1; self.by_ref("d").await.map(|v| v + x) }
    async fn associated(n: &AtomicU32) -> Result<u32, E> where Self: Sized;
}
#[async_trait]
impl Store for S {
    #[retry(base_delay = "1ms")]
    async fn by_ref(&self, key: &str) -> Result<u32, E> { tokio::task::yield_now().await; if key.is_empty() { return Err(E::Denied); } self.go() }
    #[retry(base_delay = "1ms")]
    async fn by_mut(&mut self, mut by: u32) -> Result<u32, E> { self.m += 1; by += 1; self.go()?; Ok(by + self.m) }
    #[retry(base_delay = "1ms")]
    async fn by_arc(self: Arc<Self>, (a, mut b): (u32, u32)) -> Result<u32, E> { b += 1; self.go()?; Ok(a + b) }
    #[retry(base_delay = "1ms", clone(t))]
    async fn generic<T: AsRef<str> + Send + Sync + Clone>(&self, t: T) -> Result<usize, E> where Self: Sized { let moved = t; self.go()?; Ok(moved.as_ref().len()) }
    #[retry(base_delay = "1ms", clone(text), context = ctx, fallback = { self.m += 1; Ok(format!("{text} {} {}", self.m, ctx.attempts())) })]
    async fn fallback(&mut self, text: String, ctx: &mut RetryContext) -> Result<String, E> { drop(text); self.m += 1; let _ = ctx.attempts(); Err(E::Busy) }
    #[retry(base_delay = "1ms", max_retries = self.m + 1, name = "s.letter", dead_letter(sink = self.dlq.clone(), job_id = key, payload = key))]
    async fn letter(&mut self, key: String, (mut a, _): (u32, u32)) -> Result<u32, E> { a += 1; self.m += a; if key.is_empty() { Ok(1) } else { Err(E::Busy) } }
    #[retry(base_delay = "1ms")]
    async fn associated(n: &AtomicU32) -> Result<u32, E> { if n.fetch_add(1, SeqCst) < 2 { Err(E::Busy) } else { Ok(3) } }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dynamic: Box<dyn Store> = Box::new(s());
    assert_eq!(tokio::spawn(async move { dynamic.by_ref("k").await.ok() }).await.unwrap(), Some(3));
    assert_eq!(s().by_mut(10).await, Ok(14));
    assert_eq!(Arc::new(s()).by_arc((1, 2)).await, Ok(4));
    assert_eq!(s().generic(String::from("abc")).await, Ok(3));
    let mut ctx = RetryContext::new();
    assert_eq!(s().fallback("t".into(), &mut ctx).await, Ok("t 4 4".to_string()));
    let mut one = s();
    assert_eq!(one.letter("k".into(), (1, 2)).await, Err(E::Busy));
    assert_eq!(one.m, 4);
    assert_eq!(s().default(1).await, Ok(5));
    assert_eq!(S::associated(&AtomicU32::new(0)).await, Ok(3));
}
