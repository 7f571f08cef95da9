//! Three layers that each make three attempts, above a dependency that fails.

use std::time::Duration;

use retry_runtime::testing::ManualTime;
use retry_runtime::{Budget, Jitter, Policy, Spent, Taken};

use super::{Agenda, Dice};

const LAYERS: usize = 3;
/// Requests come in at this rate, ...
const PER_SECOND: u32 = 1000;
/// ... first while all is well, ...
const HEALTHY: Duration = Duration::from_secs(5);
/// ... then while the dependency fails.
const FAILING: Duration = Duration::from_secs(10);
/// What a call of the dependency takes.
const CALL: Duration = Duration::from_millis(5);

static POLICY: Policy = Policy::new()
    .max_retries(2)
    .base_delay(Duration::from_millis(50))
    .max_delay(Duration::from_secs(1))
    .jitter(Jitter::Full);

/// How many calls the dependency gets for each request, while a call of it fails with this probability. With a budget each
/// layer has one of its own, as it is by default: a retry for five calls that succeed, and ten a second.
pub fn amplification(failing: f64, budgets: bool, seed: u64) -> f64 {
    let time = ManualTime::start();
    let budgets: [Option<Budget>; LAYERS] = std::array::from_fn(|_| budgets.then(Budget::new));
    let mut dice = Dice::seeded(seed);
    let mut agenda = Agenda::new();
    agenda.plan(Duration::ZERO, Event::Arrives);
    let (mut requests, mut calls) = (0_u64, 0_u64);
    while let Some(event) = agenda.next() {
        time.advance_to(agenda.now());
        match event {
            Event::Arrives => {
                let in_trouble = agenda.now() >= HEALTHY;
                requests += u64::from(in_trouble);
                agenda.plan(Duration::ZERO, Event::Calls(Request { in_trouble, layers: Default::default() }));
                if agenda.now() < HEALTHY + FAILING {
                    agenda.plan(dice.exponential(Duration::from_secs(1) / PER_SECOND), Event::Arrives);
                }
            }
            Event::Calls(mut request) => {
                calls += u64::from(request.in_trouble);
                request.waited();
                agenda.plan(CALL, Event::Answered(request));
            }
            Event::Answered(mut request) => {
                if request.in_trouble && dice.unit() < failing {
                    if let Some(wait) = request.failed(&budgets, &mut dice) {
                        agenda.plan(wait, Event::Calls(request));
                    }
                } else {
                    request.succeeded(&budgets);
                }
            }
        }
    }
    calls as f64 / requests as f64
}

enum Event<'b> {
    Arrives,
    Calls(Request<'b>),
    Answered(Request<'b>),
}

/// One request on its way through all layers, the outermost first.
struct Request<'b> {
    in_trouble: bool,
    layers: [Call<'b>; LAYERS],
}

/// What one layer knows of its call to the next.
#[derive(Default)]
struct Call<'b> {
    failures: u32,
    previous: Option<Duration>,
    taken: Option<Taken<'b>>,
    spent: Option<Spent<'b>>,
}

impl<'b> Request<'b> {
    fn waited(&mut self) {
        for call in &mut self.layers {
            if let Some(taken) = call.taken.take() {
                call.spent = Some(taken.spend());
            }
        }
    }

    fn succeeded(self, budgets: &[Option<Budget>; LAYERS]) {
        for (call, budget) in self.layers.into_iter().zip(budgets) {
            match (call.spent, budget) {
                (Some(spent), _) => spent.refund(),
                (None, Some(budget)) => budget.succeeded(),
                (None, None) => {}
            }
        }
    }

    /// The innermost layer retries; one that gives up is a failed attempt of the layer around it, whose retry begins all
    /// within it afresh. `None`: the outermost gave up.
    fn failed(&mut self, budgets: &'b [Option<Budget>; LAYERS], dice: &mut Dice) -> Option<Duration> {
        for (call, budget) in self.layers.iter_mut().zip(budgets).rev() {
            if POLICY.retries().allow(call.failures) {
                let wait = POLICY.delay(call.failures, call.previous, &mut || dice.bits());
                let taken = budget.as_ref().map(|budget| budget.take("unavailable"));
                if !matches!(taken, Some(None)) {
                    call.failures += 1;
                    call.previous = Some(wait);
                    call.taken = taken.flatten();
                    return Some(wait);
                }
            }
            *call = Call::default();
        }
        None
    }
}
