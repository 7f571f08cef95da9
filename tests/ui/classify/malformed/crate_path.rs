use retry_runtime::Classify;

#[derive(Classify)]
#[classify(crate = retry_runtime, default = permanent)]
enum Relative {
    Busy,
}

#[derive(Classify)]
#[classify(crate = "::retry_runtime", permanent)]
struct Quoted;

#[derive(Classify)]
#[classify(crate, permanent)]
struct Nothing;

#[derive(Classify)]
#[classify(crate = 5, permanent)]
struct Number;

fn main() {}
