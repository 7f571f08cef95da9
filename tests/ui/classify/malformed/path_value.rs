use retry_runtime::Classify;

#[derive(Classify)]
enum Error {
    #[classify(with = "judge")]
    Quoted,
    #[classify(with = |error| judge(error))]
    Closure,
    #[classify(with = judge(1))]
    Call,
    #[classify(with)]
    Nothing,
    #[classify(status = 0, rules = StatusRules::new().gone(&[7]))]
    Expression(u16),
    #[classify(status = 0, rules = 5)]
    Number(u16),
}

fn main() {}
