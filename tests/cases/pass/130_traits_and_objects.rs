// source: kind 15; what: default methods, `where Self: Sized`, trait objects, associated types and constants, generic traits, supertraits, Send bounds by spawn
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::wrong_self_convention, clippy::should_implement_trait)] // our own style below
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
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

trait Blocking {
    const AT: u32 = 3;
    fn n(&self) -> &Cell<u32>;
    #[retry(base_delay = "1ms")]
    fn sized(&self) -> Result<u32, E> where Self: Sized { self.n().set(self.n().get() + 1); if self.n().get() < Self::AT { Err(E::Busy) } else { Ok(Self::AT) } }
    #[retry(base_delay = "1ms")]
    fn owned(self) -> Result<u32, E> where Self: Sized { self.sized() }
    #[retry(base_delay = "1ms")]
    fn assoc(n: &Cell<u32>) -> Result<u32, E> where Self: Sized { n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy) } else { Ok(Self::AT) } }
}
trait Object { fn n(&self) -> &Cell<u32>; #[retry(base_delay = "1ms")] fn get(&self) -> Result<u32, E> { self.n().set(self.n().get() + 1); if self.n().get() < 3 { Err(E::Busy) } else { Ok(3) } } }
struct B(Cell<u32>);
impl Blocking for B { fn n(&self) -> &Cell<u32> { &self.0 } }
impl Object for B { fn n(&self) -> &Cell<u32> { &self.0 } }

trait Sends<K>: Sync { type Out: Send; fn load(&self, key: K) -> impl Future<Output = Result<Self::Out, E>> + Send; }
struct M(AtomicU32);
impl<K: Send + Sync> Sends<K> for M {
    type Out = u32;
    #[retry(base_delay = "1ms")]
    async fn load(&self, key: K) -> Result<u32, E> {
        let _key = &key;
        tokio::task::yield_now().await;
        if self.0.fetch_add(1, SeqCst) < 2 { Err(E::Busy) } else { Ok(3) }
    }
}
async fn through<K: Send + 'static, S: Sends<K, Out = u32> + Send + 'static>(s: S, k: K) -> Option<u32> {
    tokio::spawn(async move { s.load(k).await.ok() }).await.unwrap()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!((B(Cell::new(0)).sized(), B(Cell::new(0)).owned(), B::assoc(&Cell::new(0))), (Ok(3), Ok(3), Ok(3)));
    let object: &dyn Object = &B(Cell::new(0));
    assert_eq!(object.get(), Ok(3));
    assert_eq!(through(M(AtomicU32::new(0)), String::from("k")).await, Some(3));
}
