//! Workers as tasks of one thread: the seed decides who moves next, when time passes, and who is killed.

use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use super::dice::Dice;
use super::harness::Harness;
use super::judge;
use super::plan::{Fault, Plan};
use super::report::Report;
use super::witness::Witness;
use super::work::{Pace, Worker, max_jump};
use crate::dead_letter::{ManualClock, from_millis, to_millis};
use crate::testing::FixedRandom;

/// A life is killed after so many moves on average.
const MOVES: u64 = 120;

type Life<'a> = Pin<Box<dyn Future<Output = std::io::Error> + 'a>>;

pub(super) fn run<H: Harness>(harness: &H, plan: &Plan, place: &Path, report: &mut Report) -> Result<(), String> {
    let _ids = FixedRandom::seed(plan.seed);
    // 2026-01-02 03:04:05.006 UTC
    let time = ManualClock::new(from_millis(1_767_323_045_006));
    let store = harness.open(place, time.clock()).map_err(|error| format!("the store cannot be opened: {error}"))?;
    let mut latest = time.now();
    let mut dice = Dice::part(plan.seed, u64::MAX);
    let start = |worker: usize, life: u64| -> Result<Life<'_>, String> {
        let witness = Witness::open(place, worker, life).map_err(|error| format!("no witness: {error}"))?;
        Ok(Box::pin(Worker::new(&store, plan, (worker, life), time.clock(), Pace::Task, witness).live()))
    };
    let mut lives = (0..plan.workers).map(|worker| Ok((0, start(worker, 0)?))).collect::<Result<Vec<_>, String>>()?;
    let mut cx = Context::from_waker(Waker::noop());
    let mut killed = 0;
    while killed < plan.kills {
        let worker = usize::try_from(dice.below(lives.len() as u64)).unwrap_or(0);
        let Some((life, running)) = lives.get_mut(worker) else { break };
        if let Poll::Ready(error) = running.as_mut().poll(&mut cx) {
            return Err(format!("worker {worker} cannot tell what it does: {error}"));
        }
        time.advance(Duration::from_millis(dice.below(6)));
        if plan.has(Fault::ClockJumps) && dice.one_in(500) {
            jump(&time, plan, &mut dice);
            *report.inflicted.entry(Fault::ClockJumps).or_default() += 1;
        }
        latest = latest.max(time.now());
        if dice.one_in(MOVES) {
            *life += 1;
            *running = start(worker, *life)?;
            harness.killed(place, Some(&store));
            killed += 1;
            *report.kills.entry("anywhere".to_owned()).or_default() += 1;
        }
    }
    drop(lives);
    time.set(latest + plan.lease * 2 + Duration::from_millis(1));
    judge::judge(harness, place, &store, &time.clock(), report);
    Ok(())
}

fn jump(time: &ManualClock, plan: &Plan, dice: &mut Dice) {
    let most = max_jump(u64::try_from(plan.lease.as_millis()).unwrap_or(u64::MAX));
    let by = i64::try_from(dice.below(most * 2 + 1)).unwrap_or(0) - i64::try_from(most).unwrap_or(0);
    let to: SystemTime = from_millis(to_millis(time.now()) + by);
    time.set(to);
}
