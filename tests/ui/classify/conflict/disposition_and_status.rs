use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(permanent, status = code)]
    Api { code: u16 },
    #[classify(gone)]
    Page(#[classify(message)] String),
}

fn main() {}
