use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    Busy,
    #[classify(permanent)]
    Denied,
    Missing { url: String },
    #[classify(class = "named")]
    Named(u8),
    #[classify(outcome_unknown)]
    Reset,
}

fn is_classify<E: Classify>(_: &E) {}

fn main() {
    is_classify(&Error::Busy);
}
