#![deny(deprecated)]

use retry_runtime::{Classify, StatusRules, Verdict};

#[deprecated]
const RULES: StatusRules = StatusRules::HTTP;

#[derive(Classify)]
enum Error {
    #[classify(with = judge)]
    Function,
    #[classify(status = 0, rules = RULES)]
    Rules(u16),
}

#[deprecated(note = "use another")]
fn judge(_: &Error) -> Verdict {
    Verdict::gone("judged")
}

fn main() {}
