//! `Budget` and `Budgets`: what is there, what is taken, what comes back.
#![allow(clippy::unwrap_used, clippy::float_cmp)] // tests fail by panicking; the floats are exact

use std::sync::Arc;
use std::time::Duration;

use retry_runtime::{Budget, BudgetState, Budgets};
use tokio::time::advance;

/// Lives on successes alone.
fn dry() -> Budget {
    Budget::new().min_per_second(0)
}

fn spend_all(budget: &Budget) -> usize {
    std::iter::from_fn(|| budget.take("server_error")).map(retry_runtime::Taken::spend).count()
}

// 7.1: the defaults
#[tokio::test(start_paused = true)]
async fn by_default_a_hundred_retries_at_once_then_ten_a_second_and_a_fifth_of_what_succeeds() {
    static BUDGET: Budget = Budget::new();
    assert_eq!(BUDGET.tokens(), 100.0);
    assert_eq!(spend_all(&BUDGET), 100);
    advance(Duration::from_secs(1)).await;
    assert_eq!(spend_all(&BUDGET), 10);
    (0..50).for_each(|_| BUDGET.succeeded());
    assert_eq!(spend_all(&BUDGET), 10);
    assert_eq!(BUDGET.denied(), 3);
}

// 7.3
#[tokio::test(start_paused = true)]
async fn it_refills_after_a_drain_and_never_above_its_capacity() {
    let budget = Budget::new();
    assert_eq!(spend_all(&budget), 100);
    for (waited, left) in [(100, 1.0), (900, 10.0), (9_000, 100.0), (3_600_000, 100.0)] {
        advance(Duration::from_millis(waited)).await;
        assert_eq!(budget.tokens(), left);
    }
    (0..1_000).for_each(|_| budget.succeeded());
    assert_eq!(budget.tokens(), 100.0);
    assert_eq!(spend_all(&budget), 100);
}

// 7.1: in any window the floor alone gives `min_per_second` times the window
#[tokio::test(start_paused = true)]
async fn low_traffic_is_never_starved() {
    let budget = Budget::new().min_per_second(2).window(Duration::from_secs(5));
    assert_eq!(budget.tokens(), 10.0, "one window's flow is there at the start");
    assert_eq!(spend_all(&budget), 10);
    for _ in 0..100 {
        // two a second, and nothing ever succeeds
        advance(Duration::from_millis(500)).await;
        assert_eq!(spend_all(&budget), 1);
    }
}

// 7.1: integer milli-tokens; a third of a second of 10 a second is 3.333 tokens, and no rounding adds up
#[tokio::test(start_paused = true)]
async fn the_floor_does_not_drift() {
    let budget = Budget::new().min_per_second(3);
    assert_eq!(spend_all(&budget), 30);
    let mut granted = 0;
    for _ in 0..7_000 {
        advance(Duration::from_millis(7)).await;
        granted += spend_all(&budget);
    }
    assert_eq!(granted, 147, "49 s of 3 a second");
}

// 7.1
#[test]
fn costs_differ_by_class() {
    let budget = Budget::new();
    assert_eq!(budget.take("timeout").unwrap().spend().milli_tokens(), 2000);
    assert_eq!(budget.take("rate_limit").unwrap().spend().milli_tokens(), 1000);
    let budget = Budget::new().costs(&[("rate_limit", 5), ("free", 0), ("vast", 10_000)]);
    assert_eq!(budget.take("timeout").unwrap().spend().milli_tokens(), 1000, "the default is replaced");
    assert_eq!(budget.take("rate_limit").unwrap().spend().milli_tokens(), 5000);
    assert_eq!(budget.take("free").unwrap().spend().milli_tokens(), 1000, "a retry is never free");
    assert!(budget.take("vast").is_none(), "the capacity, and some of it is spent");
    let budget = Budget::new().costs(&[("vast", 10_000)]).capacity(50);
    assert_eq!(budget.take("vast").unwrap().spend().milli_tokens(), 50_000, "no more than the capacity");
}

// 7.2
#[test]
fn a_wait_that_is_cancelled_gives_back_and_a_denial_is_counted() {
    let budget = dry().ratio(1.0);
    budget.succeeded();
    let taken = budget.take("server_error").unwrap();
    assert_eq!(budget.tokens(), 0.0, "taken before the wait");
    assert!(budget.take("server_error").is_none());
    drop(taken);
    assert_eq!((budget.tokens(), budget.denied()), (1.0, 1));
}

// 7.1
#[test]
fn a_success_after_retries_refunds_its_own_retry() {
    let budget = dry().ratio(1.0);
    (0..3).for_each(|_| budget.succeeded());
    let first = budget.take("timeout").unwrap().spend();
    assert_eq!(first.milli_tokens(), 2000);
    let second = budget.take("server_error").unwrap().spend();
    assert_eq!(budget.tokens(), 0.0);
    second.refund();
    assert_eq!(budget.tokens(), 1.0, "what the retry before it took stays spent");
}

#[test]
fn settings_out_of_range_are_cut() {
    for (ratio, milli) in [(f64::NAN, 0), (-1.0, 0), (0.0004, 0), (0.0005, 1), (f64::INFINITY, 10_000), (1e9, 10_000)] {
        let budget = dry().ratio(ratio);
        budget.succeeded();
        assert_eq!(budget.milli_tokens(), milli, "{ratio}");
    }
    let most = Budget::new().min_per_second(u32::MAX).window(Duration::MAX).capacity(u32::MAX);
    assert_eq!(most.tokens(), f64::from(u32::MAX));
    assert_eq!(dry().ratio(1.0).capacity(0).tokens(), 0.0);
    let none = dry().ratio(1.0).capacity(0);
    none.succeeded();
    assert!(none.take("server_error").is_none());
}

// A paused clock that was moved is left behind: the budget does not wait for the time to come again.
#[test]
fn a_clock_that_is_far_behind_starts_afresh() {
    static BUDGET: Budget = Budget::new();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime().block_on(async {
        assert_eq!(spend_all(&BUDGET), 100);
        advance(Duration::from_secs(86_400)).await;
        assert_eq!(spend_all(&BUDGET), 100);
    });
    runtime().block_on(async { assert_eq!(spend_all(&BUDGET), 100) });
}

#[tokio::test(start_paused = true)]
async fn a_short_lived_program_goes_on_from_a_kept_state() {
    let before = Budget::new();
    assert_eq!(spend_all(&before), 100);
    let state = before.state();
    assert_eq!(state.milli_tokens, 0);
    let after = Budget::new();
    // kept 3 s ago: so much has flowed in since then
    after.restore(BudgetState { milli_tokens: 500, unix_millis: state.unix_millis - 3_000 });
    // the wall clock is real, and some of it has passed
    assert!((30_500..31_500).contains(&after.milli_tokens()), "{}", after.milli_tokens());
    advance(Duration::from_secs(1)).await;
    assert!((40_500..41_500).contains(&after.milli_tokens()), "{}", after.milli_tokens());
    after.restore(BudgetState { milli_tokens: u64::MAX, unix_millis: 0 });
    assert_eq!(after.tokens(), 100.0, "never above the capacity");
    after.restore(BudgetState { milli_tokens: 7, unix_millis: u64::MAX });
    assert_eq!(after.milli_tokens(), 7, "a state from the future is of now");
}

#[test]
fn each_key_has_its_own_budget() {
    static HOSTS: Budgets<String> = Budgets::new(|| dry().ratio(1.0));
    assert!(HOSTS.is_empty());
    HOSTS.get("a").succeeded();
    assert_eq!((HOSTS.get("a").tokens(), HOSTS.get("b").tokens()), (1.0, 0.0));
    assert_eq!(HOSTS.len(), 2);
    let mut keys: Vec<_> = HOSTS.all().into_iter().map(|(key, _)| key).collect();
    keys.sort();
    assert_eq!(keys, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn of_keys_that_are_as_full_the_one_not_asked_for_goes() {
    let budgets: Budgets<u32> = Budgets::new(|| Budget::new().min_per_second(1)).max_keys(2);
    for key in [1, 2] {
        budgets.get(&key).take("server_error").unwrap().spend();
    }
    budgets.get(&1);
    budgets.get(&3);
    let mut keys: Vec<_> = budgets.all().into_iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    assert_eq!(keys, [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_keys_is_bounded_and_what_is_drained_stays() {
    let budgets: Budgets<u32> = Budgets::new(|| Budget::new().min_per_second(1)).max_keys(3);
    assert_eq!(spend_all(&budgets.get(&1)), 10);
    budgets.get(&2).take("server_error").unwrap().spend();
    budgets.get(&3);
    budgets.get(&4); // 3 was as a new one: it goes, and 4 is there
    assert_eq!(budgets.len(), 3);
    budgets.get(&4).take("timeout").unwrap().spend();
    // none is as a new one: of 1 (0 left), 2 (9 left) and 4 (8 left), 2 goes
    let held = budgets.get(&5);
    let mut keys: Vec<_> = budgets.all().into_iter().map(|(key, budget)| (key, budget.tokens())).collect();
    keys.sort_by_key(|(key, _)| *key);
    assert_eq!(keys, [(1, 0.0), (4, 8.0), (5, 10.0)]);
    // 5 is as a new one, but a call holds it
    budgets.get(&6);
    assert!(Arc::ptr_eq(&held, &budgets.get(&5)));
    let mut keys: Vec<_> = budgets.all().into_iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    assert_eq!(keys, [1, 5, 6]);
    // a flood of new keys does not fill a drained budget
    (100..10_000).for_each(|key| drop(budgets.get(&key)));
    assert_eq!((budgets.len(), budgets.get(&1).tokens()), (3, 0.0));
}
