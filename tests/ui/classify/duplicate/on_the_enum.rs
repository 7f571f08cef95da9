use retry_runtime::Classify;

#[derive(Classify)]
#[classify(default = permanent, default = retryable)]
#[classify(crate = ::retry_runtime)]
#[classify(crate = ::retry_runtime)]
enum Error {
    Busy,
}

fn main() {}
