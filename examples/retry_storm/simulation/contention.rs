//! A crowd that writes to one row: who read before another wrote has to read again.
//!
//! The simulation of "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015): every client wants one write. It
//! reads the row's version, then writes; the write succeeds if the version is still the same.

use std::time::Duration;

use retry_runtime::{Backoff, Jitter, Policy};

use super::{Agenda, Dice, mean};

/// How many clients.
pub const CLIENTS: usize = 100;
/// How many runs a mean is of.
pub const RUNS: u64 = 40;

/// A way of waiting, and what the published simulation gives for it.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub name: &'static str,
    pub policy: Policy,
    /// Write calls.
    pub known_calls: f64,
    /// Seconds until all are done.
    pub known_seconds: f64,
}

const fn policy(base_delay: u64, jitter: Jitter) -> Policy {
    Policy::new()
        .forever()
        .base_delay(Duration::from_millis(base_delay))
        .max_delay(Duration::from_secs(2))
        .jitter(jitter)
}

/// The wait before attempt n + 1 is `min(2 s, 5 ms * 2^n)`, n from 1; the decorrelated one begins at 5 ms.
pub const WAYS: [Way; 5] = [
    Way { name: "at once", policy: AT_ONCE, known_calls: 2423.0, known_seconds: 2.0 },
    Way { name: "exponential", policy: policy(10, Jitter::None), known_calls: 1861.0, known_seconds: 63.0 },
    Way { name: "equal jitter", policy: policy(10, Jitter::Equal), known_calls: 812.0, known_seconds: 6.7 },
    Way { name: "full jitter", policy: policy(10, Jitter::Full), known_calls: 798.0, known_seconds: 4.9 },
    Way {
        name: "decorrelated jitter",
        policy: policy(5, Jitter::Decorrelated),
        known_calls: 1001.0,
        known_seconds: 4.5,
    },
];

const AT_ONCE: Policy = Policy::new().forever().base_delay(Duration::ZERO).backoff(Backoff::Fixed);

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    pub calls: f64,
    pub seconds: f64,
}

/// The mean of [`RUNS`] runs.
pub fn contend(policy: &Policy, clients: usize, seed: u64) -> Outcome {
    let runs: Vec<_> =
        (0..RUNS).map(|run| one_run(policy, clients, &mut Dice::seeded(seed.wrapping_add(run)))).collect();
    Outcome { calls: mean(runs.iter().map(|run| run.calls)), seconds: mean(runs.iter().map(|run| run.seconds)) }
}

/// Each arrives after one leg through the network.
enum Message {
    Read { client: usize },
    Answer { client: usize, version: u64 },
    Write { client: usize, version: u64 },
    Written { client: usize, done: bool },
}

#[derive(Clone, Copy, Default)]
struct Client {
    failures: u32,
    previous: Option<Duration>,
}

fn one_run(policy: &Policy, count: usize, dice: &mut Dice) -> Outcome {
    let leg = |dice: &mut Dice| dice.normal(Duration::from_millis(10), Duration::from_millis(2));
    let mut clients = vec![Client::default(); count];
    let mut agenda = Agenda::new();
    for client in 0..count {
        agenda.plan(leg(dice), Message::Read { client });
    }
    let (mut version, mut calls) = (0, 0_u64);
    while let Some(message) = agenda.next() {
        match message {
            Message::Read { client } => agenda.plan(leg(dice), Message::Answer { client, version }),
            Message::Answer { client, version } => agenda.plan(leg(dice), Message::Write { client, version }),
            Message::Write { client, version: read } => {
                calls += 1;
                let done = read == version;
                version += u64::from(done);
                agenda.plan(leg(dice), Message::Written { client, done });
            }
            Message::Written { done: true, .. } => {}
            Message::Written { client, done: false } => {
                let Some(state) = clients.get_mut(client) else { continue };
                let wait = policy.delay(state.failures, state.previous, &mut || dice.bits());
                *state = Client { failures: state.failures + 1, previous: Some(wait) };
                agenda.plan(wait + leg(dice), Message::Read { client });
            }
        }
    }
    Outcome { calls: calls as f64, seconds: agenda.now().as_secs_f64() }
}
