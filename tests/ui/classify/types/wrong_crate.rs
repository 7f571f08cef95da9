use retry_runtime::Classify;

#[derive(Classify)]
#[classify(crate = ::no_such_crate, permanent)]
struct Error;

fn main() {}
