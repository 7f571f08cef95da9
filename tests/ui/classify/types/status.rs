use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(status = code)]
    Text { code: String },
    #[classify(status = 0)]
    Float(f64),
}

fn main() {}
