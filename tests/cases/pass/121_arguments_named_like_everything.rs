// source: kind 12; what: arguments, generics and functions named like common words of generated code, raw identifiers included
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![allow(clippy::cast_possible_truncation, clippy::needless_lifetimes)] // our own style below
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

#[allow(non_camel_case_types, clippy::too_many_arguments)]
#[retry(max_retries = 2, base_delay = "1ms", clone(r#type, policy))]
async fn retry_runtime<'a, T, E_, R, F, const N: usize>(
    attempt: &Cell<u32>, session: u32, site: u32, record: u32, wait: u32, out: u32, error: u32, core: u32, std: u32,
    mut r#type: Vec<u32>, r#in: &'a str, mut r#match: u32, policy: String, sleep: [T; N], _e: E_, _r: R, _f: F, result: u32, r#async: u32,
) -> Result<u32, E>
where
    T: Copy + Into<u32>,
{
    attempt.set(attempt.get() + 1);
    r#type.push(1);
    r#match += 1;
    drop(policy);
    if attempt.get() < 3 { return Err(E::Busy); }
    let sum: u32 = sleep.into_iter().map(Into::into).sum();
    Ok(session + site + record + wait + out + error + core + std + r#match + sum + result + r#async + r#in.len() as u32 + r#type.len() as u32)
}
#[retry(max_retries = 2, base_delay = "1ms", fallback = Ok(r#fn), retry_on(_))]
fn r#loop(retry: &Cell<u32>, r#fn: u32) -> Result<u32, E> { retry.set(retry.get() + 1); Err(E::Denied) }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n = Cell::new(0);
    let r = retry_runtime(&n, 1, 1, 1, 1, 1, 1, 1, 1, vec![], "x", 0, "p".into(), [1u8, 2], 0u8, 0u8, 0u8, 1, 1).await;
    assert_eq!(r, Ok(8 + 1 + 3 + 1 + 1 + 1 + 1));
    n.set(0);
    assert_eq!((r#loop(&n, 7), n.get()), (Ok(7), 3));
}
