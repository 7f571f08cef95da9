use retry_runtime::{Budget, CircuitBreaker, Classify, Refused, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Other;

impl From<Refused> for Other {
    fn from(_: Refused) -> Self {
        Other
    }
}

static BUDGET: Budget = Budget::new();
static BREAKER: CircuitBreaker = CircuitBreaker::new();

#[retry(budget = 0.2)]
async fn a_ratio() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(budget = &BREAKER)]
fn the_other_one() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(breaker = "gemini")]
fn a_name() -> Result<u32, Other> {
    Err(Other)
}

#[retry(breaker = &BREAKER)]
fn no_value_for_a_refusal() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(breaker = &BREAKER, fallback = Ok(1))]
async fn nor_with_a_fallback() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(budget = &BUDGET, breaker = &BREAKER)]
async fn this_one_is_right() -> Result<u32, Other> {
    Err(Other)
}

fn main() {}
