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

/// The rules as plain arithmetic, cut after every step.
struct Model {
    of_successes: u64,
    of_floor: u64,
    capacity: u64,
    passed: Duration,
    per_second: u64,
    per_window: u64,
}

impl Model {
    /// What the floor has for a retry of this cost: a window's flow at most, or one retry.
    fn floor(&self, cost: u64) -> u64 {
        self.of_floor.min(if self.per_second == 0 { 0 } else { self.per_window.max(cost) }).min(self.capacity)
    }

    fn successes(&self, cost: u64) -> u64 {
        self.of_successes.min(self.capacity - self.floor(cost))
    }

    fn left(&self) -> u64 {
        self.floor(1000) + self.successes(1000)
    }

    fn add(&mut self, milli: u64) {
        self.of_successes = (self.of_successes + milli).min(self.capacity);
    }

    fn give_back(&mut self, (of_floor, of_successes): (u64, u64)) {
        self.of_floor += of_floor;
        self.add(of_successes);
    }

    fn flow(&self) -> u64 {
        u64::try_from(u128::from(self.per_second) * self.passed.as_nanos() / 1_000_000).unwrap()
    }

    fn pass(&mut self, time: Duration) {
        let before = self.flow();
        self.passed += time;
        self.of_floor += self.flow() - before;
    }

    /// The floor's part perishes, so that it goes first.
    fn take(&mut self, cost: u64) -> Option<(u64, u64)> {
        let (floor, successes) = (self.floor(cost), self.successes(cost));
        let of_floor = floor.min(cost);
        let of_successes = cost - of_floor;
        (of_successes <= successes).then(|| {
            if of_floor > 0 {
                self.of_floor = floor - of_floor;
            }
            self.of_successes = successes - of_successes;
            (of_floor, of_successes)
        })
    }
}

async fn agree(ratio: u32, per_second: u32, window: u64, capacity: u32, steps: &[Step]) {
    let budget = Budget::new()
        .ratio(f64::from(ratio) / 1000.0)
        .min_per_second(per_second)
        .window(Duration::from_millis(window))
        .capacity(capacity)
        .costs(&[("timeout", 2), ("rate_limit", 3)]);
    let capacity = u64::from(capacity) * 1000;
    let per_window = u64::from(per_second) * window;
    let mut model = Model {
        of_successes: 0,
        of_floor: per_window.min(capacity),
        capacity,
        passed: Duration::ZERO,
        per_second: per_second.into(),
        per_window,
    };
    // the floor begins with the first retry asked for
    let mut begun = false;
    let (mut waiting, mut spent): (Vec<(Taken<'_>, _)>, Vec<(Spent<'_>, _)>) = (Vec::new(), Vec::new());
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
                let expected = model.take(cost.min(capacity).max(1000));
                assert_eq!(taken.is_some(), expected.is_some(), "{step:?}");
                waiting.extend(taken.zip(expected));
            }
            Step::Spend if !waiting.is_empty() => {
                let (taken, share) = waiting.remove(0);
                spent.push((taken.spend(), share));
            }
            Step::Cancel if !waiting.is_empty() => {
                let (taken, share) = waiting.remove(0);
                drop(taken);
                model.give_back(share);
            }
            Step::Refund if !spent.is_empty() => {
                let (spent, share) = spent.remove(0);
                assert_eq!(spent.milli_tokens(), share.0 + share.1);
                spent.refund();
                model.give_back(share);
            }
            Step::Pass(time) => {
                advance(time).await;
                if begun {
                    model.pass(time);
                }
            }
            Step::Spend | Step::Cancel | Step::Refund => {}
        }
        assert_eq!(budget.milli_tokens(), model.left(), "after {step:?}");
        assert!(budget.milli_tokens() <= capacity);
    }
}

proptest! {
    // 7.1, 7.3
    #[test]
    fn it_counts_as_a_plain_model_does(
        ratio in 0..2_000_u32,
        per_second in 0..50_u32,
        window in prop_oneof![0..1_000_u64, 0..30_000_u64],
        capacity in 0..200_u32,
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(agree(ratio, per_second, window, capacity, &steps));
    }

    // 7.1: a rest of whatever length saves up one window's flow, whatever was cancelled or refunded before it; and in any
    // span the floor gives no more than what was saved and what flowed in
    #[test]
    fn the_floor_saves_up_one_window(
        per_second in 1..50_u32,
        window in prop_oneof![0..1_000_u64, 0..30_000_u64],
        steps in prop::collection::vec((0..3_000_u64, 0..8_u8, any::<bool>(), any::<bool>()), 1..60),
        rest in 0..100_000_u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let budget = Budget::new().ratio(0.0).min_per_second(per_second).window(Duration::from_millis(window));
            let saved = (u64::from(per_second) * window).max(1000);
            let (mut now, mut grants) = (0, Vec::new());
            for (pause, asked, cancel, refund) in steps {
                advance(Duration::from_millis(pause)).await;
                now += pause;
                for taken in (0..asked).filter_map(|_| budget.take("x")).collect::<Vec<_>>() {
                    match (cancel, refund) {
                        (true, _) => drop(taken),
                        (_, true) => taken.spend().refund(),
                        _ => { taken.spend(); grants.push(now); }
                    }
                }
            }
            for (from, start) in grants.iter().enumerate() {
                for (to, end) in grants.iter().enumerate().skip(from) {
                    let flowed = u64::from(per_second) * (end - start);
                    assert!((to - from + 1) as u64 * 1000 <= saved + flowed, "{} from {start} to {end} ms", to - from + 1);
                }
            }
            advance(Duration::from_millis(rest)).await;
            let at_once = spend_all(&budget);
            assert!(at_once * 1000 <= saved, "{at_once} after {rest} ms");
            advance(Duration::from_millis(window.max(1000))).await;
            assert_eq!(spend_all(&budget), saved / 1000, "a window's flow is there again");
        });
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
