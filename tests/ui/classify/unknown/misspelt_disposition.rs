use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(retriable)]
    Busy,
    #[classify(permenant)]
    Denied,
    #[classify(Gone)]
    Missing,
}

fn is_classify<E: Classify>(_: &E) {}

fn main() {
    // the implementation must be there all the same
    is_classify(&Error::Busy);
}
