// source: kind 1, 12; what: retry_on, stop_on and retry_ok: bars, commas, guards, constants, imported and generic unit variants, ranges, bindings, `@`
// editions: 2021 2024
// level: core
#![deny(warnings)]
use retry_runtime::{retry, Classify};
use std::cell::Cell;

use Api::{Busy, Gone};
#[derive(Debug, Clone, PartialEq, Classify)]
enum Api<T> {
    #[classify(permanent)] Busy,
    #[classify(permanent)] Gone,
    #[classify(permanent)] Code(u16),
    #[classify(permanent)] Wrapped { inner: Inner<T>, note: &'static str },
}
#[allow(dead_code)]
#[derive(Debug, Clone, PartialEq)]
enum Inner<T> { Odd, Even, Held(T) }
use Inner::{Even, Odd};
const TEAPOT: u16 = 418;
const LIMIT: u32 = 7;

macro_rules! tries { ($name:ident, $($option:tt)*) => {
    #[retry(max_retries = 2, base_delay = "1ms", $($option)*)]
    fn $name<T: Clone>(n: &Cell<u32>, error: Api<T>) -> Result<u32, Api<T>> { n.set(n.get() + 1); Err(error.clone()) }
}; }
tries!(bare, retry_on(Busy, Gone));
tries!(bars, retry_on(Busy | Api::Code(500..=599 | TEAPOT)));
tries!(nested, retry_on(Api::Wrapped { inner: Odd | Even, .. }));
tries!(bound, retry_on(Api::Code(code @ 400..=499) if *code != TEAPOT, Api::Wrapped { note, .. } if note.is_empty()));
tries!(all, retry_on(_), stop_on(Gone | Api::Wrapped { inner: Inner::Held(_), .. }));
#[retry(max_retries = 2, base_delay = "1ms", retry_ok(None, Some(0 | LIMIT), Some(n) if *n > 100))]
async fn value(n: &Cell<u32>, v: Option<u32>) -> Result<Option<u32>, Api<u8>> { n.set(n.get() + 1); Ok(v) }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let count = |f: fn(&Cell<u32>, Api<u8>) -> Result<u32, Api<u8>>, e: Api<u8>| { let n = Cell::new(0); assert_eq!(f(&n, e.clone()), Err(e)); n.get() };
    let wrapped = |inner, note| Api::Wrapped { inner, note };
    assert_eq!([count(bare, Busy), count(bare, Gone), count(bare, Api::Code(1))], [3, 3, 1]);
    assert_eq!([count(bars, Busy), count(bars, Api::Code(418)), count(bars, Api::Code(503)), count(bars, Api::Code(404)), count(bars, Gone)], [3, 3, 3, 1, 1]);
    assert_eq!([count(nested, wrapped(Odd, "")), count(nested, wrapped(Inner::Held(1), ""))], [3, 1]);
    assert_eq!([count(bound, Api::Code(404)), count(bound, Api::Code(418)), count(bound, wrapped(Odd, "")), count(bound, wrapped(Odd, "x"))], [3, 1, 3, 1]);
    assert_eq!([count(all, Busy), count(all, Gone), count(all, wrapped(Inner::Held(1), ""))], [3, 1, 1]);
    for (v, tries) in [(None, 3), (Some(0), 3), (Some(7), 3), (Some(8), 1), (Some(101), 3)] {
        let n = Cell::new(0);
        assert_eq!(value(&n, v).await, Ok(v));
        assert_eq!(n.get(), tries, "{v:?}");
    }
}
