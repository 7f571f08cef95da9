// source: kind 3, 4, 15; what: &self, &mut self, self, Box, Rc, Arc, Pin and typed receivers, with named lifetimes
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::needless_arbitrary_self_type, clippy::needless_lifetimes, clippy::boxed_local, clippy::arc_with_non_send_sync)] // our own style below
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

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

struct S { n: Cell<u32>, m: u32 }
fn s() -> S { S { n: Cell::new(0), m: 0 } }
impl S {
    fn go(&self) -> Result<u32, E> { self.n.set(self.n.get() + 1); if self.n.get() < 3 { Err(E::Busy) } else { Ok(self.n.get()) } }
    #[retry(base_delay = "1ms")]
    async fn a<'a>(&'a self) -> Result<&'a Cell<u32>, E> { self.go()?; Ok(&self.n) }
    #[retry(base_delay = "1ms")]
    async fn b<'a>(&'a mut self, _x: &'a u8) -> Result<u32, E> { self.m += 1; self.go() }
    #[retry(base_delay = "1ms")]
    async fn c(self: &Self) -> Result<u32, E> { self.go() }
    #[retry(base_delay = "1ms")]
    fn d(self: &mut Self) -> Result<u32, E> { self.m += 1; self.go() }
    #[retry(base_delay = "1ms")]
    async fn e(self: Box<Self>) -> Result<u32, E> { self.go() }
    #[retry(base_delay = "1ms")]
    fn f(self: Rc<Self>) -> Result<u32, E> { self.go() }
    #[retry(base_delay = "1ms")]
    async fn g(self: Arc<Self>, more: u32) -> Result<u32, E> { Ok(self.go()? + more) }
    #[retry(base_delay = "1ms")]
    async fn h(self: &Arc<Self>) -> Result<u32, E> { let other = Arc::clone(self); other.go() }
    #[retry(base_delay = "1ms")]
    async fn i(self: Pin<&Self>) -> Result<u32, E> { self.go() }
    #[retry(base_delay = "1ms", share(self))]
    async fn j(mut self: Pin<&mut Self>) -> Result<u32, E> { self.as_mut().get_mut().m += 1; self.go() }
    #[retry(base_delay = "1ms", share(self))]
    async fn k(mut self) -> Result<u32, E> { self.m += 1; self.go().map(|_| self.m) }
    #[retry(base_delay = "1ms", share(self))]
    fn l(mut self: Box<Self>) -> Result<u32, E> { self.m += 1; self.go().map(|_| self.m) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(s().a().await.unwrap().get(), 3);
    assert_eq!(s().b(&1).await, Ok(3));
    assert_eq!((s().c().await, s().d(), Box::new(s()).e().await), (Ok(3), Ok(3), Ok(3)));
    assert_eq!((Rc::new(s()).f(), Arc::new(s()).g(1).await, Arc::new(s()).h().await), (Ok(3), Ok(4), Ok(3)));
    let mut one = s();
    assert_eq!(Pin::new(&one).i().await, Ok(3));
    one.n.set(0);
    assert_eq!((Pin::new(&mut one).j().await, one.m), (Ok(3), 3));
    assert_eq!((s().k().await, Box::new(s()).l()), (Ok(3), Ok(3)));
}
