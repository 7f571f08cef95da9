use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify[retryable]]
    Busy,
    #[classify{permanent}]
    Denied,
}

fn main() {}
