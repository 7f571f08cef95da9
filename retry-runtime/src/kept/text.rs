//! States as text: JSON that says what it is of.

use serde_json::{Map, Value, json};

use crate::breaker::{BreakerPhase, BreakerState, CircuitBreaker};
use crate::budget::{Budget, BudgetState, Budgets};
use crate::error::{StoreError, StoreErrorKind};

/// Restores what is kept, where it is of the right kind.
pub(super) fn restore(
    what: &str,
    name: &str,
    kept: Option<String>,
    read: impl FnOnce(&Value) -> Option<()>,
) -> Result<bool, StoreError> {
    let Some(kept) = kept else { return Ok(false) };
    let value: Value = serde_json::from_str(&kept).unwrap_or_default();
    let state = value.get("of").filter(|of| *of == what).and_then(|_| value.get("state"));
    match state.and_then(read) {
        Some(()) => Ok(true),
        None => {
            let shown = crate::attempt::cut_middle(&kept, 100);
            let message = format!(
                "what is kept under `{name}` is no state of a {what}: {shown}; give each budget and each breaker a name of its own"
            );
            Err(StoreError::new(StoreErrorKind::Invalid, message))
        }
    }
}

fn kept(what: &str, state: &Value) -> String {
    json!({ "of": what, "state": state }).to_string()
}

pub(super) fn of_budget(budget: &Budget) -> String {
    kept("budget", &budget_value(budget.state()))
}

pub(super) fn to_budget(budget: &Budget, value: &Value) -> Option<()> {
    budget.restore(budget_state(value)?);
    Some(())
}

fn budget_value(state: BudgetState) -> Value {
    json!({ "milli_tokens": state.milli_tokens, "unix_millis": state.unix_millis })
}

fn budget_state(value: &Value) -> Option<BudgetState> {
    let number = |name| value.get(name).and_then(Value::as_u64);
    Some(BudgetState { milli_tokens: number("milli_tokens")?, unix_millis: number("unix_millis")? })
}

pub(super) fn of_budgets(budgets: &Budgets<String>) -> String {
    let worth_keeping = budgets.all().into_iter().filter(|(_, budget)| !budget.is_fresh());
    let states: Map<String, Value> = worth_keeping.map(|(key, budget)| (key, budget_value(budget.state()))).collect();
    kept("budgets", &Value::Object(states))
}

pub(super) fn to_budgets(budgets: &Budgets<String>, value: &Value) -> Option<()> {
    // all of them are understood before one is changed
    let states: Option<Vec<(&String, BudgetState)>> =
        value.as_object()?.iter().map(|(key, value)| Some((key, budget_state(value)?))).collect();
    for (key, state) in states? {
        budgets.get(key.as_str()).restore(state);
    }
    Some(())
}

pub(super) fn of_breaker(breaker: &CircuitBreaker) -> String {
    let BreakerState { phase, openings, calls, failures, open_until_unix_millis, unix_millis } = breaker.state();
    let state = json!({
        "phase": phase.as_str(),
        "openings": openings,
        "calls": calls,
        "failures": failures,
        "open_until_unix_millis": open_until_unix_millis,
        "unix_millis": unix_millis,
    });
    kept("breaker", &state)
}

pub(super) fn to_breaker(breaker: &CircuitBreaker, value: &Value) -> Option<()> {
    let number = |name| value.get(name).and_then(Value::as_u64);
    let small = |name| number(name).and_then(|number| u32::try_from(number).ok());
    breaker.restore(BreakerState {
        phase: BreakerPhase::parse(value.get("phase")?.as_str()?)?,
        openings: small("openings")?,
        calls: small("calls")?,
        failures: small("failures")?,
        open_until_unix_millis: number("open_until_unix_millis")?,
        unix_millis: number("unix_millis")?,
    });
    Some(())
}
