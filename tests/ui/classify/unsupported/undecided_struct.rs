use retry_runtime::Classify;

#[derive(Classify)]
struct Error {
    code: u16,
}

#[derive(Classify)]
#[classify(class = "named")]
struct Named;

fn main() {}
