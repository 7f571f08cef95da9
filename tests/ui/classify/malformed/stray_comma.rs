use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable,, class = "busy")]
    Busy,
    #[classify(, permanent)]
    Denied,
}

fn main() {}
