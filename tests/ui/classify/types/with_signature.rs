use retry_runtime::{Classify, Verdict};
#[derive(Classify)]
enum Error {
    #[classify(with = no_argument)]
    NoArgument,
    #[classify(with = by_value)]
    ByValue,
    #[classify(with = no_verdict)]
    NoVerdict,
    #[classify(with = missing)]
    Missing,
    #[classify(with = Self::method)]
    Method,
}

fn no_argument() -> Verdict {
    Verdict::gone("x")
}

fn by_value(_: Error) -> Verdict {
    Verdict::gone("x")
}

fn no_verdict(_: &Error) -> bool {
    true
}

fn main() {}
