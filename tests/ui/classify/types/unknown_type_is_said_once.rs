use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(transparent)]
    Inner(Missing),
    #[classify(status = code)]
    Status { code: Box<Absent> },
}

fn main() {}
