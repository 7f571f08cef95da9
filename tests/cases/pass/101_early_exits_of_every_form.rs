// source: kind 1; what: let-else, labelled blocks, match arms, closures and inner async blocks with `?` of their own: each ends what it belongs to, and the attempt at most
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::needless_return, clippy::never_loop)] // our own style below
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

fn step(n: u32) -> Result<u32, E> { if n < 3 { Err(E::Busy) } else { Ok(n) } }

#[retry(max_retries = 3, base_delay = "1ms")]
async fn let_else(n: &Cell<u32>, x: Option<u32>) -> Result<u32, E> {
    n.set(n.get() + 1);
    let Some(x) = x.filter(|_| n.get() > 2) else { return Err(E::Busy) };
    let inner = async { Ok::<u32, E>(step(9)? + 1) }.await?;
    let closure = |v| -> Result<u32, E> { Ok(step(v)? + 1) };
    if closure(0).is_ok() { return Err(E::Denied); }
    Ok(x + inner)
}
#[retry(max_retries = 3, base_delay = "1ms")]
fn labelled(n: &Cell<u32>) -> Result<u32, E> {
    n.set(n.get() + 1);
    let got = 'found: {
        for i in 0..n.get() {
            if i == 2 { break 'found Ok(i); }
        }
        Err(E::Busy)
    };
    match got {
        Ok(2) => {}
        Ok(_) => return Err(E::Denied),
        Err(e) => return Err(e),
    }
    let v = (|| { step(n.get())?; Ok::<_, E>(7) })()?;
    Ok(v)
}
#[retry(max_retries = 3, base_delay = "1ms")]
async fn only_a_return(n: &Cell<u32>) -> Result<u32, E> {
    n.set(n.get() + 1);
    return step(n.get());
}
#[retry(max_retries = 3, base_delay = "1ms")]
fn diverges_in_a_branch(n: &Cell<u32>) -> Result<u32, E> {
    n.set(n.get() + 1);
    loop {
        if n.get() < 3 { return Err(E::Busy); }
        return Ok(n.get());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n = Cell::new(0);
    assert_eq!(let_else(&n, Some(1)).await, Ok(11));
    assert_eq!(n.replace(0), 3);
    assert_eq!(labelled(&n), Ok(7));
    assert_eq!(n.replace(0), 3);
    assert_eq!(only_a_return(&n).await, Ok(3));
    n.set(0);
    assert_eq!(diverges_in_a_branch(&n), Ok(3));
}
