use retry_runtime::{Budget, CircuitBreaker, Classify, Refused, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

impl From<Refused> for Busy {
    fn from(_: Refused) -> Self {
        Busy
    }
}

static BUDGET: Budget = Budget::new();
static BREAKER: CircuitBreaker = CircuitBreaker::new();

#[retry(budget)]
fn no_value() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(breaker(BREAKER))]
fn parentheses() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(budget = &BUDGET, budget = &BUDGET)]
fn twice() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(budget = find()?, breaker = return Ok(1))]
fn leaves() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(circuit_breaker = &BREAKER, retry_budget = &BUDGET, braker = &BREAKER)]
fn other_names() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
