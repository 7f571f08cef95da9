use retry_runtime::Classify;

#[derive(Classify)]
#[classify(default = permanant)]
enum Error {
    Busy,
}

#[derive(Classify)]
#[classify(default = transparent)]
enum Other {
    Inner(Error),
}

fn main() {}
