// source: kind 5, 12; what: io::Result, aliases with and without defaults, projections, Self::Result, std paths, and the boxed dyn errors
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

use retry_runtime::GaveUp;
use std::error::Error;
use std::io;

type Out<T, Er = E> = std::result::Result<T, Er>;
type Report<T> = core::result::Result<T, GaveUp<E>>;
mod api { pub type Result<T> = std::result::Result<T, super::E>; }
trait Job { type Res; fn run(&self) -> Self::Res; }
struct J(Cell<u32>);
impl Job for J {
    type Res = Result<u32, E>;
    #[retry(base_delay = "1ms")]
    fn run(&self) -> Self::Res { self.0.set(self.0.get() + 1); if self.0.get() < 3 { Err(E::Busy) } else { Ok(3) } }
}
impl J {
    #[retry(base_delay = "1ms")]
    fn by_projection(&self) -> <J as Job>::Res { Job::run(self) }
}
#[retry(base_delay = "1ms")]
async fn io_result(n: &Cell<u32>) -> io::Result<u32> {
    n.set(n.get() + 1);
    if n.get() < 3 { Err(io::ErrorKind::ConnectionReset)?; }
    Ok(n.get())
}
#[retry(base_delay = "1ms")]
async fn alias(n: &Cell<u32>) -> Out<u32> { n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy) } else { Ok(3) } }
#[retry(base_delay = "1ms")]
fn of_a_module() -> api::Result<u32> { Ok(1) }
#[retry(base_delay = "1ms")]
async fn report(n: &Cell<u32>) -> Report<u32> { n.set(n.get() + 1); Err(E::Busy) }
#[retry(base_delay = "1ms")]
async fn dynamic(n: &Cell<u32>) -> Result<u32, Box<dyn Error + Send + Sync>> {
    n.set(n.get() + 1);
    if n.get() < 3 { Err(io::Error::from(io::ErrorKind::TimedOut))?; }
    if n.get() == 9 { return Err("text".into()); }
    Ok(n.get())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n = Cell::new(0);
    assert_eq!(io_result(&n).await.unwrap(), 3);
    n.set(0);
    assert_eq!((alias(&n).await, of_a_module()), (Ok(3), Ok(1)));
    n.set(0);
    assert_eq!(report(&n).await.unwrap_err().attempts(), 3);
    n.set(0);
    assert_eq!(dynamic(&n).await.unwrap(), 3);
    let j = J(Cell::new(0));
    assert_eq!(j.run(), Ok(3));
    assert_eq!(j.by_projection(), Ok(3));
}
