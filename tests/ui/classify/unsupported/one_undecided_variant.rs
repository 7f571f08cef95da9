use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(permanent)]
    Denied,
    Missing,
}

fn main() {}
