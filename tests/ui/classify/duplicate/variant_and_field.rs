use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(status = code)]
    Api {
        #[classify(status)]
        code: u16,
    },
    #[classify(retryable)]
    Busy(#[classify(retry_after)] u64, #[classify(retry_after)] u64),
}

fn main() {}
