use retry_runtime::Classify;

#[derive(Classify)]
#[classify(permanent)]
struct Inner;

#[derive(Classify)]
enum Error {
    #[classify(transparent, retryable)]
    Disposition(Inner),
    #[classify(transparent, class = "mine")]
    Class(Inner),
    #[classify(transparent = 0, retry_after = 1)]
    Hint(Inner, u64),
    #[classify(outcome_unknown, transparent)]
    Outcome(Inner),
    #[classify(transparent = 0, with = judge)]
    Function(Inner),
    #[classify(transparent = 0, status = 1)]
    Status(Inner, u16),
}

fn main() {}
