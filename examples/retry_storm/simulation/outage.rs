//! A service that is slow for a while, and what its clients' retries make of it.
//!
//! Requests arrive all the time, each of another client, through one program that has the budget and the breaker. The
//! service works on them in the order they came, and does not know which clients have stopped waiting: work for nobody is
//! what keeps it busy after its trouble is over.

mod server;
mod strategy;

use std::time::Duration;

use retry_runtime::testing::ManualTime;
use retry_runtime::{Budget, CircuitBreaker, Permit, Spent, Taken};

use super::{Agenda, Dice};
use server::Server;
pub use strategy::{STRATEGIES, Strategy};

/// Requests arrive for about so many seconds.
pub const SECONDS: usize = 60;
/// In these the service is slow.
pub const TROUBLE: std::ops::Range<usize> = 15..25;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// The part of the attempts that fail for no reason, at any time: what retries are good for.
const FAULTS: f64 = 0.01;

/// One second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Requests that arrived in it.
    pub requests: u64,
    /// Those of them that were answered in the end.
    pub answered: u64,
    /// Attempts that reached the service in it.
    pub attempts: u64,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub seconds: Vec<Second>,
}

impl Outcome {
    /// Attempts for each request.
    pub fn amplification(&self) -> f64 {
        self.sum(|second| second.attempts) / self.sum(|second| second.requests)
    }

    /// The largest number of attempts in one second, as a multiple of the requests in it on average.
    pub fn peak(&self) -> f64 {
        let most = self.seconds.iter().map(|second| second.attempts).max().unwrap_or_default();
        most as f64 * SECONDS as f64 / self.sum(|second| second.requests)
    }

    /// The part of the requests that were answered.
    pub fn success(&self) -> f64 {
        self.sum(|second| second.answered) / self.sum(|second| second.requests)
    }

    /// The same, of the requests before the trouble.
    pub fn success_before(&self) -> f64 {
        let before = self.seconds.get(..TROUBLE.start).unwrap_or_default();
        Self { seconds: before.to_vec() }.success()
    }

    /// Seconds from the end of the trouble until 95 of 100 requests are answered, and are so for the rest of the run. `None`:
    /// not while requests arrived, or only in the last five seconds, when the load was about to end anyway.
    pub fn recovered_after(&self) -> Option<f64> {
        let well = |second: &Second| second.answered * 100 >= second.requests * 95;
        let arrivals = self.seconds.get(TROUBLE.end..SECONDS)?;
        let ill = arrivals.iter().rposition(|second| !well(second)).map_or(0, |last| last + 1);
        (ill + 5 <= arrivals.len()).then_some(ill as f64)
    }

    fn sum(&self, of: impl Fn(&Second) -> u64) -> f64 {
        self.seconds.iter().map(of).sum::<u64>() as f64
    }
}

/// One run with so many clients.
pub fn run(strategy: &Strategy, clients: u64, seed: u64) -> Outcome {
    let time = ManualTime::start();
    let shared = Shared {
        strategy,
        budget: strategy.budget.then(Budget::new),
        breaker: strategy.breaker.then(CircuitBreaker::new),
    };
    let mut world = World {
        shared: &shared,
        between: Duration::from_secs_f64(SECONDS as f64 / clients as f64),
        server: Server::for_load(clients as f64 / SECONDS as f64),
        dice: Dice::seeded(seed),
        agenda: Agenda::new(),
        // retries may come long after the last request
        seconds: vec![Second::default(); 2 * SECONDS],
    };
    world.agenda.plan(Duration::ZERO, Event::Arrives { left: clients });
    while let Some(event) = world.agenda.next() {
        time.advance_to(world.agenda.now());
        match event {
            Event::Arrives { left } => world.arrives(left),
            Event::Attempt(call) => world.attempt(call),
            Event::Over(call, answer) => world.over(call, answer),
        }
    }
    Outcome { seconds: world.seconds }
}

/// What the calls share.
struct Shared<'s> {
    strategy: &'s Strategy,
    budget: Option<Budget>,
    breaker: Option<CircuitBreaker>,
}

enum Event<'s> {
    Arrives { left: u64 },
    Attempt(Call<'s>),
    Over(Call<'s>, Answer),
}

#[derive(Clone, Copy)]
enum Answer {
    Good,
    /// At once: the queue was too long, or a fault.
    Refused,
    /// None came.
    Timeout,
}

/// One request, and its retries.
#[derive(Default)]
struct Call<'s> {
    /// The second it arrived in.
    arrived: usize,
    failures: u32,
    previous: Option<Duration>,
    permit: Option<Permit<'s>>,
    taken: Option<Taken<'s>>,
    spent: Option<Spent<'s>>,
}

struct World<'s> {
    shared: &'s Shared<'s>,
    /// Of two requests, on average.
    between: Duration,
    server: Server,
    dice: Dice,
    agenda: Agenda<Event<'s>>,
    seconds: Vec<Second>,
}

impl<'s> World<'s> {
    fn arrives(&mut self, left: u64) {
        if left > 1 {
            let next = self.dice.exponential(self.between);
            self.agenda.plan(next, Event::Arrives { left: left - 1 });
        }
        let arrived = self.count(|second| second.requests += 1);
        self.attempt(Call { arrived, ..Call::default() });
    }

    /// As the engine does it: the breaker is asked before a first attempt, or was asked before the wait.
    fn attempt(&mut self, mut call: Call<'s>) {
        if let (Some(breaker), None) = (&self.shared.breaker, &call.permit) {
            match breaker.permit() {
                Ok(permit) => call.permit = Some(permit),
                Err(_open) => return,
            }
        }
        if let Some(taken) = call.taken.take() {
            call.spent = Some(taken.spend());
        }
        self.count(|second| second.attempts += 1);
        if self.dice.unit() < FAULTS {
            self.agenda.plan(Duration::from_millis(1), Event::Over(call, Answer::Refused));
            return;
        }
        let (answer, after) = match self.server.serve(self.agenda.now(), &mut self.dice) {
            Some(took) if took <= PATIENCE => (Answer::Good, took),
            Some(_) => (Answer::Timeout, PATIENCE),
            None => (Answer::Refused, Duration::from_millis(1)),
        };
        self.agenda.plan(after, Event::Over(call, answer));
    }

    fn over(&mut self, mut call: Call<'s>, answer: Answer) {
        let permit = call.permit.take();
        let class = match answer {
            Answer::Good => {
                if let Some(permit) = permit {
                    permit.succeeded();
                }
                match (call.spent, &self.shared.budget) {
                    (Some(spent), _) => spent.refund(),
                    (None, Some(budget)) => budget.succeeded(),
                    (None, None) => {}
                }
                if let Some(second) = self.seconds.get_mut(call.arrived) {
                    second.answered += 1;
                }
                return;
            }
            Answer::Refused => "unavailable",
            Answer::Timeout => "timeout",
        };
        if let Some(permit) = permit {
            permit.failed();
        }
        if let Some(wait) = self.wait(&mut call, class) {
            self.agenda.plan(wait, Event::Attempt(call));
        }
    }

    /// The wait before the retry, if there is one: the limits in the engine's order.
    fn wait(&mut self, call: &mut Call<'s>, class: &str) -> Option<Duration> {
        let policy = &self.shared.strategy.policy;
        if !policy.retries().allow(call.failures) {
            return None;
        }
        let wait = policy.delay(call.failures, call.previous, &mut || self.dice.bits());
        if let Some(breaker) = &self.shared.breaker {
            call.permit = Some(breaker.permit_after(wait).ok()?);
        }
        if let Some(budget) = &self.shared.budget {
            call.taken = Some(budget.take(class)?);
        }
        call.failures += 1;
        call.previous = Some(wait);
        Some(wait)
    }

    /// Counts something in this second; which one it is.
    fn count(&mut self, what: impl FnOnce(&mut Second)) -> usize {
        let number = usize::try_from(self.agenda.now().as_secs()).unwrap_or(usize::MAX);
        if let Some(second) = self.seconds.get_mut(number) {
            what(second);
        }
        number
    }
}
