use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify("retryable")]
    Busy,
    #[classify("whatever")]
    Denied,
    #[classify(5)]
    Number,
    #[classify(retry_runtime::retryable)]
    Path,
}

fn main() {}
