//! Budgets: the exact ratio in the long run, and the same numbers as a plain model with one thread.
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use retry_runtime::{Budget, Spent, Taken};
use tokio::time::advance;

/// Lives on successes alone.
fn dry() -> Budget {
    Budget::new().min_per_second(0)
}

fn spend_all(budget: &Budget) -> u64 {
    std::iter::from_fn(|| budget.take("server_error")).map(Taken::spend).map(|_| 1).sum()
}

// 7.3: not one retry more or less, at any ratio
#[test]
fn the_long_run_ratio_is_exact() {
    for percent in [10_u32, 20, 50, 60, 75, 90, 100] {
        let budget = dry().ratio(f64::from(percent) / 100.0);
        let mut retries = 0;
        for successes in 1..=100_000_u64 {
            budget.succeeded();
            retries += spend_all(&budget);
            assert_eq!(retries, successes * u64::from(percent) / 100, "{percent} % of {successes}");
        }
    }
}

/// What a caller does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Succeed(u16),
    /// Takes, and keeps it until later.
    Take(&'static str),
    /// The oldest wait is over, or cancelled.
    Spend,
    Cancel,
    /// The oldest spent retry succeeds.
    Refund,
    Pass(Duration),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => any::<u16>().prop_map(|times| Step::Succeed(times % 300)),
        4 => prop_oneof![Just("timeout"), Just("rate_limit"), Just("other")].prop_map(Step::Take),
        1 => Just(Step::Spend),
        1 => Just(Step::Cancel),
        1 => Just(Step::Refund),
        1 => (0..20_000_u64).prop_map(|millis| Step::Pass(Duration::from_millis(millis))),
    ]
}

/// The rules as plain arithmetic, cut at the capacity after every step.
struct Model {
    left: u64,
    capacity: u64,
    passed: Duration,
    per_second: u64,
}

impl Model {
    fn add(&mut self, milli: u64) {
        self.left = (self.left + milli).min(self.capacity);
    }

    fn floor(&self) -> u64 {
        u64::try_from(u128::from(self.per_second) * self.passed.as_nanos() / 1_000_000).unwrap()
    }

    fn pass(&mut self, time: Duration) {
        let before = self.floor();
        self.passed += time;
        self.add(self.floor() - before);
    }

    fn take(&mut self, milli: u64) -> bool {
        let enough = milli <= self.left;
        if enough {
            self.left -= milli;
        }
        enough
    }
}

async fn agree(ratio: u32, per_second: u32, window: u64, capacity: u32, steps: &[Step]) {
    let budget = Budget::new()
        .ratio(f64::from(ratio) / 1000.0)
        .min_per_second(per_second)
        .window(Duration::from_secs(window))
        .capacity(capacity)
        .costs(&[("timeout", 2), ("rate_limit", 3)]);
    let capacity = u64::from(capacity) * 1000;
    let reserve = (u64::from(per_second) * window * 1000).min(capacity);
    let mut model = Model { left: reserve, capacity, passed: Duration::ZERO, per_second: per_second.into() };
    // the floor begins with the first retry asked for
    let mut begun = false;
    let (mut waiting, mut spent): (Vec<(Taken<'_>, u64)>, Vec<Spent<'_>>) = (Vec::new(), Vec::new());
    for &step in steps {
        match step {
            Step::Succeed(times) => (0..times).for_each(|_| {
                budget.succeeded();
                model.add(ratio.into());
            }),
            Step::Take(class) => {
                begun = true;
                let cost = match class {
                    "timeout" => 2000,
                    "rate_limit" => 3000,
                    _ => 1000,
                };
                let taken = budget.take(class);
                let cost = cost.min(capacity).max(1000);
                assert_eq!(taken.is_some(), model.take(cost), "{step:?}");
                waiting.extend(taken.map(|taken| (taken, cost)));
            }
            Step::Spend if !waiting.is_empty() => spent.push(waiting.remove(0).0.spend()),
            Step::Cancel if !waiting.is_empty() => {
                let (taken, cost) = waiting.remove(0);
                drop(taken);
                model.add(cost);
            }
            Step::Refund if !spent.is_empty() => {
                let spent = spent.remove(0);
                model.add(spent.milli_tokens());
                spent.refund();
            }
            Step::Pass(time) => {
                advance(time).await;
                if begun {
                    model.pass(time);
                }
            }
            Step::Spend | Step::Cancel | Step::Refund => {}
        }
        assert_eq!(budget.milli_tokens(), model.left, "after {step:?}");
        assert!(budget.milli_tokens() <= capacity);
    }
}

proptest! {
    // 7.1, 7.3
    #[test]
    fn it_counts_as_a_plain_model_does(
        ratio in 0..2_000_u32,
        per_second in 0..50_u32,
        window in 0..30_u64,
        capacity in 0..200_u32,
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(agree(ratio, per_second, window, capacity, &steps));
    }

    // 7.3: whatever the ratio, demand and order, no more than the ratio
    #[test]
    fn never_more_than_the_ratio(ratio in 0..=1_000_u32, calls in prop::collection::vec((0..20_u32, 0..20_u32), 1..200)) {
        let budget = dry().ratio(f64::from(ratio) / 1000.0);
        let (mut successes, mut retries) = (0, 0);
        for (succeed, retry) in calls {
            (0..succeed).for_each(|_| budget.succeeded());
            successes += u64::from(succeed);
            retries += u64::try_from((0..retry).filter_map(|_| budget.take("x")).map(Taken::spend).count()).unwrap();
            prop_assert!(retries * 1000 <= successes * u64::from(ratio));
        }
    }
}

// 7.3: under threads nothing is counted twice and nothing is lost
#[test]
fn threads_share_it_to_the_last_thousandth() {
    let budget = dry().ratio(0.75).capacity(u32::MAX);
    let spent = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (budget, spent) = (&budget, &spent);
            scope.spawn(move || {
                for round in 0..20_000_u64 {
                    budget.succeeded();
                    if let Some(taken) = budget.take(if round % 3 == 0 { "timeout" } else { "other" }) {
                        match (round + thread) % 4 {
                            0 => drop(taken),
                            1 => taken.spend().refund(),
                            _ => {
                                spent.fetch_add(taken.spend().milli_tokens(), Ordering::Relaxed);
                            }
                        }
                    }
                }
            });
        }
    });
    assert_eq!(budget.milli_tokens() + spent.into_inner(), 8 * 20_000 * 750);
}
