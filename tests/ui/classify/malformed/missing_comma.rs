use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable class = "busy")]
    Busy,
    #[classify(class = "busy" retryable)]
    Busier,
    #[classify(permanent; class = "denied")]
    Denied,
}

fn main() {}
