// source: kind 4; what: `&mut` of Send but not Sync types: by argument, field, trait object, slice and generic; read, written and passed on; `&'static` results too
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::extra_unused_lifetimes, clippy::needless_lifetimes)] // our own style below
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

struct Conn { n: Cell<u32> }
trait Link: Send { fn n(&self) -> u32; fn bump(&mut self); }
impl Link for Conn { fn n(&self) -> u32 { self.n.get() } fn bump(&mut self) { self.n.set(self.n.get() + 1); } }
fn send<T: Send>(t: T) -> T { t }

#[retry(base_delay = "1ms")]
async fn by_dyn(link: &mut dyn Link) -> Result<u32, E> {
    link.bump();
    tokio::task::yield_now().await;
    if link.n() < 3 { Err(E::Busy) } else { Ok(link.n()) }
}
#[retry(base_delay = "1ms")]
async fn by_generic<L: Link + ?Sized>(link: &mut L) -> Result<u32, E> {
    link.bump();
    tokio::task::yield_now().await;
    if link.n() < 3 { Err(E::Busy) } else { Ok(link.n()) }
}
#[retry(base_delay = "1ms")]
async fn by_slice(cells: &mut [Cell<u32>], at: usize) -> Result<u32, E> {
    let cell = &cells[at];
    cell.set(cell.get() + 1);
    if cell.get() < 3 { return Err(E::Busy); }
    tokio::task::yield_now().await;
    Ok(cells[at].get())
}
impl Conn {
    #[retry(base_delay = "1ms")]
    async fn static_text(&mut self) -> Result<&'static str, E> {
        self.n.set(self.n.get() + 1);
        tokio::task::yield_now().await;
        if self.n.get() < 3 { Err(E::Busy) } else { Ok("text") }
    }
    #[retry(base_delay = "1ms")]
    async fn text<'x>(&mut self, text: &'x str) -> Result<Vec<&'static str>, E> {
        self.n.set(self.n.get() + 1);
        tokio::task::yield_now().await;
        if self.n.get() < 3 || text.is_empty() { Err(E::Busy) } else { Ok(vec!["text"]) }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let conn = || Conn { n: Cell::new(0) };
    assert_eq!(send(by_dyn(&mut conn())).await, Ok(3));
    assert_eq!(send(by_generic(&mut conn())).await, Ok(3));
    assert_eq!(send(by_slice(&mut [Cell::new(0)], 0)).await, Ok(3));
    assert_eq!(send(conn().static_text()).await, Ok("text"));
    assert_eq!(send(conn().text("x")).await, Ok(vec!["text"]));
}
