use retry_runtime::{Budget, Budgets, CircuitBreaker, Classify, Refused, retry};

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

#[retry(budget = Budget::new().ratio(0.1))]
async fn one_for_each_call() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(budget = &Budget::new())]
fn borrowed_it_is_no_better() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(breaker = CircuitBreaker::new())]
fn a_breaker_for_each_call() -> Result<u32, Other> {
    Err(Other)
}

static BUDGETS: Budgets<String> = Budgets::new(Budget::new);

#[retry(budget = &BUDGETS)]
fn all_of_them() -> Result<u32, Busy> {
    Err(Busy)
}

#[retry(budget = BUDGETS.get("host"))]
fn this_is_right_too() -> Result<u32, Busy> {
    Err(Busy)
}

fn main() {}
