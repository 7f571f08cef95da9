// source: kind 3, 4; what: a type parameter that is itself `&mut X`, several `&mut` of one type, nested `&mut &mut`, reborrowed parts
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::cast_possible_truncation, clippy::len_without_is_empty)] // our own style below
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

trait Sink { fn put(&mut self, v: u32); fn len(&self) -> usize; }
impl Sink for Vec<u32> { fn put(&mut self, v: u32) { self.push(v); } fn len(&self) -> usize { Vec::len(self) } }
impl<S: Sink + ?Sized> Sink for &mut S { fn put(&mut self, v: u32) { (**self).put(v); } fn len(&self) -> usize { (**self).len() } }

#[retry(base_delay = "1ms", share(sink))]
async fn by_value<S: Sink>(mut sink: S) -> Result<usize, E> {
    sink.put(1);
    tokio::task::yield_now().await;
    if sink.len() < 3 { Err(E::Busy) } else { Ok(sink.len()) }
}
#[retry(base_delay = "1ms")]
fn by_reference<S: Sink>(sink: &mut S) -> Result<usize, E> { sink.put(1); if sink.len() < 3 { Err(E::Busy) } else { Ok(sink.len()) } }
#[retry(base_delay = "1ms")]
async fn two(a: &mut Vec<u32>, b: &mut &mut Vec<u32>) -> Result<usize, E> {
    std::mem::swap(a, b);
    a.push(1);
    b.push(2);
    let (first, rest) = a.split_first_mut().ok_or(E::Busy)?;
    *first += rest.len() as u32;
    if a.len() + b.len() < 6 { Err(E::Busy) } else { Ok(a.len()) }
}
#[retry(base_delay = "1ms")]
async fn rebound(mut list: &mut Vec<u32>) -> Result<usize, E> {
    list.push(1);
    let other = &mut vec![];
    if list.len() < 3 { list = other; list.push(9); return Err(E::Busy); }
    Ok(list.len())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut v = vec![];
    assert_eq!(by_value(&mut v).await, Ok(3));
    assert_eq!(by_value(vec![]).await, Ok(3));
    v.clear();
    assert_eq!(by_reference(&mut &mut v), Ok(3));
    let (mut a, mut b) = (vec![], vec![]);
    assert_eq!(two(&mut a, &mut &mut b).await, Ok(3));
    let mut v = vec![];
    assert_eq!((rebound(&mut v).await, v.len()), (Ok(3), 3));
    let _ = Cell::new(0);
}
