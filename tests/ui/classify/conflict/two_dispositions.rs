use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable, permanent)]
    Busy,
    #[classify(gone)]
    #[classify(unknown)]
    Missing,
}

fn main() {}
