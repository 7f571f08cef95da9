// source: kind 15; what: const expressions, defaults, HRTB, `?Sized`, dyn with lifetimes, arrays of generic length, where clauses on types
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::multiple_bound_locations)] // our own style below
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

use std::borrow::Cow;
use std::fmt::Debug;

#[retry(base_delay = "1ms")]
async fn a<const N: usize, const C: char>(n: &Cell<u32>, xs: [u8; N]) -> Result<[u8; N], E> { n.set(n.get() + 1); if n.get() < 3 || C == 'z' { Err(E::Busy) } else { Ok(xs) } }
#[retry(base_delay = "1ms")]
fn b<F>(f: F) -> Result<usize, E> where for<'x> F: Fn(&'x str) -> Option<&'x str> { f("ab").map(str::len).ok_or(E::Busy) }
#[retry(base_delay = "1ms")]
async fn c<'a, T: ?Sized + ToOwned + Debug>(t: &'a T) -> Result<Cow<'a, T>, E> where T::Owned: Debug, Option<T::Owned>: Clone { Ok(Cow::Borrowed(t)) }
#[retry(base_delay = "1ms")]
fn d(f: &(dyn for<'x> Fn(&'x [u8]) -> &'x [u8] + Send + Sync)) -> Result<usize, E> { Ok(f(b"abc").len()) }
struct W<'a, T: 'a, const N: usize = 2> { t: &'a [T; N] }
impl<'a, T: Copy + 'a, const N: usize> W<'a, T, N> {
    const LEN: usize = N;
    #[retry(base_delay = "1ms")]
    async fn first<U>(&self, to: U) -> Result<(&'a T, U), E> where U: Clone + From<T> { if Self::LEN == 0 { return Err(E::Busy); } Ok((&self.t[0], to.clone())) }
}
#[retry(base_delay = "1ms")]
async fn e<T>(t: T) -> Result<T::Owned, E> where T: std::ops::Deref, T::Target: ToOwned<Owned = <T as E2>::Owned>, T: E2 { Ok((*t).to_owned()) }
trait E2 { type Owned; }
impl E2 for &str { type Owned = String; }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(a::<2, 'a'>(&Cell::new(0), [1, 2]).await, Ok([1, 2]));
    assert_eq!(b(|s| s.get(1..)), Ok(1));
    assert_eq!(c("x").await.unwrap(), "x");
    assert_eq!(d(&|s| &s[1..]), Ok(2));
    assert_eq!(W { t: &[7u8, 8] }.first(1u32).await, Ok((&7, 1)));
    assert_eq!(e("x").await, Ok("x".to_string()));
}
