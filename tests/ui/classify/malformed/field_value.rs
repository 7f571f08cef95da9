use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(status = "code")]
    Quoted { code: u16 },
    #[classify(status = self.code)]
    Expression { code: u16 },
    #[classify(status)]
    Nothing { code: u16 },
    #[classify(retryable, retry_after(after))]
    Brackets { after: u64 },
    #[classify(message = )]
    Equals { text: String },
    #[classify(transparent = Inner::field)]
    Path(u8),
    #[classify(status = 1.5)]
    Float(u16),
    #[classify(status = -1)]
    Negative(u16),
}

fn main() {}
