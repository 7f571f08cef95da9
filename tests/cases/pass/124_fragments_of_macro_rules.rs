// source: kind 12, 15; what: every option from macro_rules fragments: expr, pat, path, ident, literal, ty, tt, block; whole methods with `$self`
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

use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::Verdict;
use std::time::Duration;

fn by_hand(_: &E) -> Verdict { Verdict::retryable("busy") }
macro_rules! retried {
    ($name:ident($store:ident), $max:expr, $delay:literal, $pat:pat, $ok:pat, $path:path, $ctx:ident, $fallback:expr, $sink:expr, $id:expr, $ty:ty, $body:block, $op:literal) => {
        #[retry(max_retries = $max, base_delay = $delay, retry_on($pat), retry_ok($ok), classify = $path, context = $ctx,
            fallback = $fallback, name = $op, dead_letter(sink = $sink, job_id = $id))]
        fn $name(n: &Cell<u32>, $store: &MemoryStore) -> $ty { n.set(n.get() + 1); let _ = $ctx.attempts(); $body }
    };
}
retried!(f(store), 1 + 1, "1ms", E::Denied | E::Busy, Some(0) | None, self::by_hand, seen, Ok(Some(7)), store, "id", Result<Option<u32>, E>, { Err(E::Busy) }, "op");

macro_rules! method {
    ($self:ident, $(#[$m:meta])* $vis:vis $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        $(#[$m])*
        #[retry(max_retries = $self.retries, base_delay = $self.delay, name = "m", fallback = $self.other())]
        $vis async fn $name(&mut $self, $($arg: $ty),*) -> $ret $body
    };
}
struct S { retries: u32, delay: Duration, calls: u32 }
impl S {
    fn other(&self) -> Result<u32, E> { Ok(self.calls * 10) }
    method!(self, #[allow(dead_code)] pub(crate) go(by: u32) -> Result<u32, E> { self.calls += by; Err(E::Busy) });
}
macro_rules! attribute { ($($option:tt)*) => { #[retry($($option)*)] fn h(n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); Err(E::Busy) } }; }
attribute!(max_retries = 3, base_delay = "1ms");
macro_rules! inline { ($max:expr, $ret:ty, $body:block) => { retry_runtime::retrying!(max_retries = $max, base_delay = "1ms"; -> $ret $body) }; }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n = Cell::new(0);
    assert_eq!(f(&n, &MemoryStore::new()), Ok(Some(7)));
    assert_eq!(n.replace(0), 3);
    let mut s = S { retries: 2, delay: Duration::from_millis(1), calls: 0 };
    assert_eq!(s.go(1).await, Ok(30));
    assert_eq!(h(&n), Err(E::Busy));
    assert_eq!(n.replace(0), 4);
    let r = inline!(2, Result<u32, E>, { n.set(n.get() + 1); Err(E::Busy) });
    assert_eq!((r, n.get()), (Err(E::Busy), 3));
}
