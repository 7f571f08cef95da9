use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable = true)]
    Value,
    #[classify(permanent("denied"))]
    Brackets,
    #[classify(gone, outcome_unknown = "yes")]
    Outcome,
    #[classify(retryable)]
    Field(#[classify(retry_after = 0)] u64),
}

fn main() {}
