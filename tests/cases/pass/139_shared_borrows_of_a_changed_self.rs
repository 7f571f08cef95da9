// source: kind 7; what: `&mut self -> Result<&T, E>`, the body changing self: works where the plain loop does
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

struct Pool { items: Vec<u32>, gets: u32 }
impl Pool {
    #[retry(base_delay = "1ms")]
    fn get(&mut self) -> Result<&u32, E> {
        self.gets += 1;
        if self.gets < 3 { return Err(E::Busy); }
        self.items.first().ok_or(E::Busy)
    }
}

fn main() {
    let mut pool = Pool { items: vec![7], gets: 0 };
    assert_eq!(pool.get(), Ok(&7));
    assert_eq!(pool.gets, 3);
    let _ = Cell::new(0);
}
