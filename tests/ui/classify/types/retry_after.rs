use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable)]
    Float(#[classify(retry_after)] f64),
    #[classify(retryable, retry_after = 0)]
    Text(Option<String>),
}

fn main() {}
