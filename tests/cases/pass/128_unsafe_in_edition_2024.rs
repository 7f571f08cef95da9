// source: kind 15; what: unsafe attributes, unsafe functions whose bodies need unsafe blocks, `unsafe extern`
// editions: 2024
// level: core
#![deny(warnings, unsafe_op_in_unsafe_fn)]
#![allow(improper_ctypes_definitions)] // our own style below
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

#[unsafe(no_mangle)]
#[retry(max_retries = 2, base_delay = "1ms")]
pub(crate) extern "C" fn case128_c(n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); if n.get() < 3 { Err(E::Busy) } else { Ok(3) } }
/// # Safety
/// `p` is valid.
#[retry(max_retries = 2, base_delay = "1ms")]
unsafe extern "C" fn d(p: *const u32) -> Result<u32, E> {
    // SAFETY: the caller's promise
    let v = unsafe { *p };
    if v == 0 { Err(E::Busy) } else { Ok(v) }
}
unsafe trait Raw {
    /// # Safety
    /// `p` is valid.
    #[retry(base_delay = "1ms")]
    unsafe fn read(&self, p: *const u32) -> Result<u32, E> { unsafe { d(p) } }
    /// # Safety
    /// `p` is valid.
    #[retry(base_delay = "1ms")]
    async unsafe fn read_later(&self, p: *const u32) -> Result<u32, E> { unsafe { d(p) } }
}
unsafe impl Raw for u8 {}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(case128_c(&Cell::new(0)), Ok(3));
    assert_eq!(unsafe { (1u8.read(&4), 1u8.read_later(&5).await) }, (Ok(4), Ok(5)));
}
