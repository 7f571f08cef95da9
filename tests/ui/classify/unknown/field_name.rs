use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(status = cod)]
    Api { code: u16, text: String },
    #[classify(retryable, retry_after = 1)]
    Tuple(u64),
    #[classify(transparent = source)]
    Unit,
    #[classify(message = zebra)]
    Other { text: String, code: u16 },
}

fn main() {}
