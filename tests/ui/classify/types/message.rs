use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(message = 0)]
    Number(u16),
    Bytes(#[classify(message)] Vec<u8>),
}

fn main() {}
