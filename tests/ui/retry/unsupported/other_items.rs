use retry_runtime::retry;

#[retry]
enum Mode {
    A,
}

#[retry]
struct Client;

#[retry]
trait Store {
    fn get(&self) -> u32;
}

#[retry]
impl Client {
    fn get(&self) -> u32 {
        1
    }
}

#[retry]
const LIMIT: u32 = 3;

#[retry]
static NAME: &str = "x";

#[retry]
mod inner {}

#[retry]
type Alias = u32;

#[retry]
use std::fmt as other;

#[retry]
unsafe trait Odd {}

#[retry]
macro_rules! made {
    () => {};
}

fn main() {
    let _ = (Mode::A, Client.get(), LIMIT, NAME);
}
