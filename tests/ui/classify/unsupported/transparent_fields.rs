use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(transparent)]
    Unit,
    #[classify(transparent)]
    Two(u8, u8),
    #[classify(transparent)]
    Named { a: u8, b: u8, c: u8 },
}

#[derive(Classify)]
#[classify(transparent)]
struct Empty;

fn main() {}
