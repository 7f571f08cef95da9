use retry_runtime::{Classify, StatusRules};
const RULES: StatusRules = StatusRules::HTTP;

#[derive(Classify)]
enum Error {
    #[classify(rules = RULES)]
    Api { code: u16 },
    #[classify(permanent, rules = RULES)]
    Denied,
}

fn main() {}
