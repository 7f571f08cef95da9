// source: kind 6, 15; what: tuples, structs, slices, references, `@`, nested and `mut` parts: each attempt starts from the caller's values
// editions: 2021 2024
// level: hard
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

struct Point { x: u32, y: Vec<u32> }

#[retry(base_delay = "1ms", clone(y, list))]
async fn f(
    n: &Cell<u32>,
    Point { x, mut y }: Point,
    ((mut a, b), [mut c, _, ..]): ((u32, &str), [u32; 4]),
    &(mut d, ref e): &(u32, String),
    whole @ (first, _): (u32, u32),
    ref by_ref: String,
    mut list: Vec<u32>,
) -> Result<u32, E> {
    n.set(n.get() + 1);
    y.push(1);
    list.push(1);
    a += 1;
    c += 1;
    d += 1;
    let sum = x + a + c + d + first + whole.1;
    let lengths = y.len() + b.len() + e.len() + by_ref.len() + list.len();
    if n.get() < 3 { return Err(E::Busy); }
    Ok(sum * 100 + u32::try_from(lengths).map_err(|_| E::Denied)?)
}
#[retry(base_delay = "1ms")]
fn g(n: &Cell<u32>, (a, &mut mut b): (&mut Vec<u32>, &mut u32), Point { mut x, .. }: Point) -> Result<u32, E> {
    n.set(n.get() + 1);
    a.push(b);
    b += 10;
    x += 10;
    if n.get() < 3 { Err(E::Busy) } else { Ok(b + x) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n = Cell::new(0);
    let point = || Point { x: 1, y: vec![] };
    let r = f(&n, point(), ((2, "b"), [3; 4]), &(4, "e".into()), (5, 6), "r".into(), vec![]).await;
    assert_eq!(r, Ok((1 + 3 + 4 + 5 + 5 + 6) * 100 + 5));
    n.set(0);
    let mut seen = vec![];
    assert_eq!(g(&n, (&mut seen, &mut 1), point()), Ok(22));
    assert_eq!(seen, [1, 1, 1]);
}
