use retry_runtime::{Classify, Verdict};

#[derive(Classify)]
enum Error {
    #[classify(retryable)]
    Busy,
}

impl Classify for Error {
    fn classify(&self) -> Verdict {
        Verdict::gone("by hand")
    }
}

fn main() {}
