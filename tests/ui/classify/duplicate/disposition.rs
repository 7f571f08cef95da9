use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable, retryable)]
    Busy,
}

fn main() {}
