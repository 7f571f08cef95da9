use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retryable, class = 5)]
    Number,
    #[classify(retryable, class = busy)]
    Word,
    #[classify(retryable, class = "")]
    Empty,
    #[classify(retryable, class = "rate limit")]
    Space,
    #[classify(retryable, class = "exhausted:429")]
    Colon,
    #[classify(retryable, class)]
    Nothing,
    #[classify(retryable, class =)]
    Equals,
    #[classify(retryable, class("busy"))]
    Brackets,
    #[classify(retryable, class = concat!("a", "b"))]
    Macro,
}

fn main() {}
