use retry_runtime::Classify;

#[derive(Classify)]
#[classify(defualt = permanent)]
enum Error {
    Busy,
}

fn main() {}
