use retry_runtime::{Classify, Verdict};
#[derive(Classify)]
enum Error {
    #[classify(with = judge, retryable)]
    Disposition,
    #[classify(with = judge, class = "mine")]
    Class,
    #[classify(with = judge, status = 0)]
    Status(u16),
    #[classify(with = judge, outcome_unknown)]
    Outcome,
}

fn judge(_: &Error) -> Verdict {
    Verdict::gone("judged")
}

fn main() {}
