// source: kind 6; what: arguments, parts of patterns and `_` drop when and in the order in which a plain function drops them, also when the future is dropped early
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

use std::cell::RefCell;

struct Noisy<'a>(&'a RefCell<Vec<&'static str>>, &'static str);
impl Drop for Noisy<'_> { fn drop(&mut self) { self.0.borrow_mut().push(self.1); } }
type Log = RefCell<Vec<&'static str>>;

macro_rules! functions { ($(#[$m:meta])* $sync:ident $async:ident) => {
    $(#[$m])* fn $sync(log: &Log, _: Noisy<'_>, a: Noisy<'_>, (b, _): (Noisy<'_>, Noisy<'_>), _c: Noisy<'_>) -> Result<u32, E> {
        let _local = Noisy(log, "local");
        log.borrow_mut().push("body");
        if a.1 == b.1 { Err(E::Denied) } else { Ok(1) }
    }
    $(#[$m])* async fn $async(log: &Log, _: Noisy<'_>, a: Noisy<'_>, (b, _): (Noisy<'_>, Noisy<'_>), _c: Noisy<'_>) -> Result<u32, E> {
        let _local = Noisy(log, "local");
        log.borrow_mut().push("body");
        tokio::task::yield_now().await;
        if a.1 == b.1 { Err(E::Denied) } else { Ok(1) }
    }
}; }
functions!(plain plain_async);
functions!(#[retry(max_retries = 2, base_delay = "1ms")] retried retried_async);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let log = Log::default();
    let noisy = |name| Noisy(&log, name);
    macro_rules! args { ($f:ident) => { $f(&log, noisy("_"), noisy("a"), (noisy("b"), noisy("b2")), noisy("c")) }; }
    assert_eq!(args!(plain), Ok(1));
    let wanted = log.take();
    assert_eq!(args!(retried), Ok(1));
    assert_eq!(log.take(), wanted);
    assert_eq!(args!(plain_async).await, Ok(1));
    let wanted = log.take();
    assert_eq!(args!(retried_async).await, Ok(1));
    assert_eq!(log.take(), wanted);
    // never polled
    drop(args!(plain_async));
    let wanted = log.take();
    drop(args!(retried_async));
    assert_eq!(log.take(), wanted);
    let _ = (Cell::new(0), E::Busy);
}
