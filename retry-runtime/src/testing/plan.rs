//! Comparing a policy's plan with what a test expects.

use crate::policy::{Policy, wait_text};

/// Fails the test unless a policy amounts to this: its whole plan in one line, or its waits one by one.
///
/// Takes what `policy = ..` takes. Waits are written as the plan prints them, `"2s"` or `"2s..3s"` with jitter; as many as
/// there are retries, or with `..` at the end only the first ones.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::testing::assert_plan;
/// use retry_runtime::{Jitter, Policy};
///
/// const GEMINI: Policy = Policy::new()
///     .max_retries(3)
///     .base_delay(Duration::from_secs(2))
///     .max_delay(Duration::from_secs(31))
///     .jitter(Jitter::Additive(Duration::from_secs(1)));
///
/// assert_plan!(GEMINI, "4 attempts; waits 2s..3s, 4s..5s, 8s..9s; at most 17s in total");
/// assert_plan!(GEMINI, ["2s..3s", "4s..5s", "8s..9s"]);
/// assert_plan!(GEMINI.forever(), ["2s..3s", "4s..5s", ..]);
/// ```
#[macro_export]
macro_rules! assert_plan {
    ($policy:expr, [$($wait:literal),+, ..] $(,)?) => {
        $crate::testing::assert_plan_waits(&$crate::AsPolicy::policy(&$policy), &[$($wait),+], true)
    };
    ($policy:expr, [$($wait:literal),* $(,)?] $(,)?) => {
        $crate::testing::assert_plan_waits(&$crate::AsPolicy::policy(&$policy), &[$($wait),*], false)
    };
    ($policy:expr, $plan:expr $(,)?) => {
        $crate::testing::assert_plan_text(&$crate::AsPolicy::policy(&$policy), &$plan)
    };
}

/// What [`assert_plan!`] calls.
#[doc(hidden)]
#[track_caller]
#[allow(clippy::panic)] // a test fails by panicking
pub fn assert_plan_text(policy: &Policy, expected: &str) {
    let found = policy.plan().to_string();
    assert!(found == expected, "the policy's plan is another one\n  found:    {found}\n  expected: {expected}");
}

/// What [`assert_plan!`] calls.
#[doc(hidden)]
#[track_caller]
#[allow(clippy::panic)] // a test fails by panicking
pub fn assert_plan_waits(policy: &Policy, expected: &[&str], and_more: bool) {
    let plan = policy.plan();
    let found: Vec<String> = plan.waits().iter().take(expected.len()).map(|wait| wait_text(*wait)).collect();
    let of_all =
        if and_more { plan.waits().len() > expected.len() } else { plan.attempts() == Some(expected.len() as u64 + 1) };
    assert!(
        found == expected && of_all,
        "the policy waits otherwise\n  found:    {plan}\n  expected: {}{}",
        expected.join(", "),
        if and_more { ", and more" } else { "" }
    );
}
