use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable)]
    Busy(#[classify(retryafter)] u64),
    #[classify(retryable)]
    Slow(#[classify(zebra)] u64),
}

fn main() {}
