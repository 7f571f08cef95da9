// source: kind 15; what: extern "C", no_mangle, export_name, unsafe extern, visibilities, link sections of attributes
// editions: 2021
// level: core
#![deny(warnings)]
#![allow(improper_ctypes_definitions, clippy::needless_pub_self)] // our own style below
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

#[no_mangle]
#[retry(max_retries = 2, base_delay = "1ms")]
pub(crate) extern "C" fn case127_c(n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy) } else { Ok(3) } }
#[retry(max_retries = 2, base_delay = "1ms")]
#[export_name = "case127_other"]
/// # Safety
/// none
unsafe extern "C" fn d(p: *const Cell<u32>) -> Result<u32, E> { let n = unsafe { &*p }; n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy) } else { Ok(3) } }
mod deep {
    use super::{retry, E};
    #[retry(base_delay = "1ms")]
    pub(in super) extern "Rust" fn e() -> Result<u32, E> { Ok(1) }
    #[retry(base_delay = "1ms")]
    pub(self) fn f() -> Result<u32, E> { Ok(1) }
    pub(crate) fn g() -> Result<u32, E> { f() }
}

fn main() {
    let n = Cell::new(0);
    assert_eq!(case127_c(&n), Ok(3));
    n.set(0);
    assert_eq!(unsafe { d(&n) }, Ok(3));
    assert_eq!((deep::e(), deep::g()), (Ok(1), Ok(1)));
}
