use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable, permanent, gone)]
    Busy,
}

fn main() {}
