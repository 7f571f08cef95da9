use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable, jitter = "full")]
    Busy,
}

#[derive(Classify)]
#[classify(zebra)]
struct Other;

fn main() {}
