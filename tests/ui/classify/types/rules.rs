use retry_runtime::Classify;

const RULES: u8 = 5;

#[derive(Classify)]
enum Error {
    #[classify(status = 0, rules = RULES)]
    WrongType(u16),
    #[classify(status = 0, rules = MISSING)]
    Missing(u16),
}

fn main() {}
