use retry_runtime::Classify;

#[derive(Classify)]
#[classify(defualt = permanent)]
enum Error {
    #[classify(retriable, clas = "busy", retry_after = wait)]
    Busy { wait: u64 },
    #[classify(transparent)]
    Inner,
    #[classify(retryable, class = 5)]
    Rate(#[classify(permanent)] u64),
    #[classify(permanent)]
    Fine,
    #[classify(status = cod, message = txt)]
    Api { code: u16, text: String },
}

fn is_classify<E: Classify>(_: &E) {}

fn main() {
    is_classify(&Error::Fine);
}
