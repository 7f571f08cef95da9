use retry_runtime::Classify;

struct Plain;

#[derive(Classify)]
enum Error {
    #[classify(transparent)]
    Inner(Plain),
    #[classify(transparent)]
    Boxed(Box<Plain>),
}

fn main() {}
