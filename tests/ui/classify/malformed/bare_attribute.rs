use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify]
    Busy,
    #[classify()]
    Denied,
    #[classify = "retryable"]
    Missing,
    #[classify(retryable)]
    Field(#[classify] u64),
}

#[derive(Classify)]
#[classify]
enum Bare {
    Busy,
}

fn main() {}
