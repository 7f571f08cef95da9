use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable, class = "one")]
    #[classify(class = "two")]
    Busy,
}

fn main() {}
