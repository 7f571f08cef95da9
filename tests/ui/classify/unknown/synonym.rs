use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(transient)]
    Busy,
    #[classify(fatal)]
    Denied,
    #[classify(code = status)]
    Api { status: u16 },
}

fn main() {}
