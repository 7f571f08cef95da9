//! The breaker against a plain model, with probes that are cancelled, dropped, late, or panic, with states that are kept and
//! gone on from, and with faulty breakers that the comparison must tell from the model.
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use retry_runtime::testing::ManualTime;
use retry_runtime::{BreakerPhase, BreakerState, CircuitBreaker, Permit, Verdict};

/// All times in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Settings {
    percent: u32,
    min_calls: u32,
    window: u64,
    open_for: u64,
    max_open: u64,
    probes: u32,
    lease: u64,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask {
        wait: u64,
    },
    End {
        which: usize,
        how: End,
    },
    Pass(u64),
    /// Its state is kept.
    Keep,
    /// It goes on from the state that was kept last: calls that are under way change nothing any more.
    Restore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Succeeds,
    Fails,
    Unknown,
    Permanent,
    Gone,
    Dropped,
    Panics,
}

/// What the breaker under test does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A probe that is dropped keeps its place.
    SticksHalfOpen,
    ClosesOnCancel,
    FailsOnPanic,
    PermanentCounts,
    GoneCounts,
    UnknownIsNothing,
    /// The outcome of an earlier generation counts.
    LateCounts,
    /// So does that of a probe whose lease is over.
    ExpiredCounts,
    NeverStaysLonger,
    OneProbeTooMany,
    /// A kept state has no calls.
    CallsForgotten,
    /// Nor how often it opened.
    OpeningsForgotten,
    /// An open one that is gone on from opens for its whole time again.
    OpensAnew,
    /// A kept state is as good as one of now.
    NeverTooOld,
    /// A half-open one is gone on from as closed.
    RestoreCloses,
}

const FAULTS: &[Fault] = &[
    Fault::SticksHalfOpen,
    Fault::ClosesOnCancel,
    Fault::FailsOnPanic,
    Fault::PermanentCounts,
    Fault::GoneCounts,
    Fault::UnknownIsNothing,
    Fault::LateCounts,
    Fault::ExpiredCounts,
    Fault::NeverStaysLonger,
    Fault::OneProbeTooMany,
    Fault::CallsForgotten,
    Fault::OpeningsForgotten,
    Fault::OpensAnew,
    Fault::NeverTooOld,
    Fault::RestoreCloses,
];

/// The rules once more, as lists of what happened.
struct Model {
    settings: Settings,
    now: u64,
    phase: Is,
    generation: u64,
    openings: u32,
    /// Step of the window, and whether it failed.
    calls: Vec<(u64, bool)>,
    /// When step 0 began, and the newest step that was looked at.
    origin: Option<u64>,
    newest: u64,
    probes: Vec<Probe>,
    kept: Option<Kept>,
}

/// A state, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    phase: BreakerPhase,
    openings: u32,
    calls: u32,
    failures: u32,
    /// Until when it is open; 0 of a closed one.
    until: u64,
    at: u64,
}

#[derive(Clone, Copy, Debug)]
enum Is {
    Closed,
    Open { until: u64 },
    HalfOpen { succeeded: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    number: usize,
    until: u64,
}

/// A call of the model: its number and the generation it was admitted in.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: usize,
    generation: u64,
}

impl Model {
    fn phase(&self) -> BreakerPhase {
        match self.phase {
            Is::Closed => BreakerPhase::Closed,
            Is::Open { .. } => BreakerPhase::Open,
            Is::HalfOpen { .. } => BreakerPhase::HalfOpen,
        }
    }

    fn enter(&mut self, phase: Is) {
        self.phase = phase;
        self.generation += 1;
        self.probes.clear();
        self.calls.clear();
        self.origin = None;
        self.newest = 0;
    }

    /// The step of now; what is older than the window is gone.
    fn step(&mut self) -> u64 {
        let step = (self.now - *self.origin.get_or_insert(self.now)) / (self.settings.window / 10);
        if step >= self.newest + 10 {
            self.calls.clear();
            self.origin = Some(self.now);
            self.newest = 0;
        } else {
            self.newest = step;
        }
        let oldest = self.newest;
        self.calls.retain(|(at, _)| at + 10 > oldest);
        self.newest
    }

    /// Calls and failures of the window.
    fn recent(&self) -> (usize, usize) {
        (self.calls.len(), self.calls.iter().filter(|(_, failed)| *failed).count())
    }

    fn keep(&mut self) -> Kept {
        let mut kept =
            Kept { phase: self.phase(), openings: self.openings, calls: 0, failures: 0, until: 0, at: self.now };
        match self.phase {
            Is::Closed => {
                self.step();
                let (calls, failures) = self.recent();
                (kept.calls, kept.failures) = (calls.try_into().unwrap(), failures.try_into().unwrap());
            }
            Is::Open { until } => kept.until = until.max(self.now),
            Is::HalfOpen { .. } => kept.until = self.now,
        }
        self.kept = Some(kept);
        kept
    }

    fn restore(&mut self, kept: Kept) {
        let Settings { open_for, max_open, window, .. } = self.settings;
        if kept.phase == BreakerPhase::Closed {
            self.openings = 0;
            self.enter(Is::Closed);
            if self.now - kept.at < window {
                self.origin = Some(kept.at);
                self.calls = (0..kept.calls).map(|call| (0, call < kept.failures)).collect();
            }
        } else {
            self.openings = kept.openings;
            let left = kept.until.saturating_sub(self.now).min(max_open.max(open_for));
            self.enter(Is::Open { until: self.now + left });
        }
    }

    fn ask(&mut self, number: usize, wait: u64) -> Result<Call, u64> {
        if let Is::Open { until } = self.phase {
            if self.now < until {
                return Err(until - self.now);
            }
            self.enter(Is::HalfOpen { succeeded: 0 });
        }
        if let Is::HalfOpen { succeeded } = self.phase {
            let running = self.probes.iter().filter(|probe| self.now < probe.until).count();
            if succeeded as usize + running >= self.settings.probes as usize {
                return Err(0);
            }
            self.probes.push(Probe { number, until: self.now + wait + self.settings.lease });
        }
        Ok(Call { number, generation: self.generation })
    }

    fn is_late(&self, call: Call) -> bool {
        call.generation != self.generation
    }

    fn is_expired(&self, call: Call) -> bool {
        let at_work = |probe: &Probe| probe.number == call.number && self.now < probe.until;
        !self.is_late(call) && matches!(self.phase, Is::HalfOpen { .. }) && !self.probes.iter().any(at_work)
    }

    fn end(&mut self, call: Call, how: End) {
        if self.is_late(call) || self.is_expired(call) {
            return;
        }
        self.probes.retain(|probe| probe.number != call.number);
        let failed = match how {
            End::Succeeds => false,
            End::Fails | End::Unknown => true,
            End::Permanent | End::Gone | End::Dropped | End::Panics => return,
        };
        match self.phase {
            Is::Closed => {
                let step = self.step();
                self.calls.push((step, failed));
                let (calls, failures) = self.recent();
                let enough = calls >= self.settings.min_calls as usize;
                if failed && enough && failures * 100 >= calls * self.settings.percent as usize {
                    self.open();
                }
            }
            Is::Open { .. } => panic!("nothing is admitted while it is open"),
            Is::HalfOpen { .. } if failed => self.open(),
            Is::HalfOpen { succeeded } if succeeded + 1 == self.settings.probes => {
                self.openings = 0;
                self.enter(Is::Closed);
            }
            Is::HalfOpen { succeeded } => self.phase = Is::HalfOpen { succeeded: succeeded + 1 },
        }
    }

    fn open(&mut self) {
        let Settings { open_for, max_open, .. } = self.settings;
        let lasts = (open_for << self.openings.min(20)).min(max_open.max(open_for));
        self.openings += 1;
        self.enter(Is::Open { until: self.now + lasts });
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Ends a call, as the fault would have it.
fn end(breaker: &CircuitBreaker, permit: Permit<'_>, how: End, fault: Fault, late: bool, expired: bool) {
    let verdict = |how| match how {
        End::Fails => Verdict::retryable("busy"),
        End::Unknown => Verdict::unknown("odd"),
        End::Permanent => Verdict::permanent("denied"),
        _ => Verdict::gone("missing"),
    };
    let counts_anyway = (late && fault == Fault::LateCounts) || (expired && fault == Fault::ExpiredCounts);
    let fresh = if counts_anyway { breaker.permit().ok() } else { None };
    let permit = fresh.unwrap_or(permit);
    match (how, fault) {
        (End::Dropped, Fault::SticksHalfOpen) => std::mem::forget(permit),
        (End::Dropped, Fault::ClosesOnCancel) | (End::Succeeds, _) => permit.succeeded(),
        (End::Panics, Fault::FailsOnPanic)
        | (End::Permanent, Fault::PermanentCounts)
        | (End::Gone, Fault::GoneCounts) => permit.failed(),
        (End::Unknown, Fault::UnknownIsNothing) | (End::Dropped, _) => drop(permit),
        (End::Panics, _) => {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let _held = permit;
                resume_unwind(Box::new("the probe panicked"))
            }));
            assert!(panicked.is_err());
        }
        (End::Fails | End::Unknown | End::Permanent | End::Gone, _) => permit.judged(&verdict(how)),
    }
}

/// The kept state, as the fault would have it.
fn gone_on_from(mut state: BreakerState, fault: Fault, passed: u64, settings: Settings) -> BreakerState {
    match fault {
        Fault::CallsForgotten => (state.calls, state.failures) = (0, 0),
        Fault::OpeningsForgotten => state.openings = 0,
        Fault::OpensAnew if state.phase == BreakerPhase::Open => {
            state.open_until_unix_millis = state.unix_millis + passed + settings.open_for;
        }
        Fault::NeverTooOld => state.unix_millis += passed,
        Fault::RestoreCloses if state.phase == BreakerPhase::HalfOpen => state.phase = BreakerPhase::Closed,
        _ => {}
    }
    state
}

/// A state of the breaker's beside one of the model's, in its times.
fn as_kept(state: BreakerState, started: u64) -> Kept {
    let BreakerState { phase, openings, calls, failures, open_until_unix_millis, unix_millis } = state;
    let until = open_until_unix_millis.saturating_sub(started);
    Kept { phase, openings, calls, failures, until, at: unix_millis - started }
}

/// Runs the steps on both, and says where they first differ.
fn compare(settings: Settings, steps: &[Step], fault: Fault) -> Result<(), String> {
    let extra = u32::from(fault == Fault::OneProbeTooMany);
    let max_open = if fault == Fault::NeverStaysLonger { settings.open_for } else { settings.max_open };
    let breaker = CircuitBreaker::new()
        .failure_ratio(f64::from(settings.percent) / 100.0)
        .min_calls(settings.min_calls)
        .window(millis(settings.window))
        .open_for(millis(settings.open_for))
        .max_open(millis(max_open))
        .probes(settings.probes + extra)
        .probe_lease(millis(settings.lease));
    let mut model = Model {
        settings,
        now: 0,
        phase: Is::Closed,
        generation: 0,
        openings: 0,
        calls: Vec::new(),
        origin: None,
        newest: 0,
        probes: Vec::new(),
        kept: None,
    };
    let time = ManualTime::start();
    let started = breaker.state().unix_millis;
    // looking at it begins its window
    model.step();
    let mut state = None;
    let mut running: Vec<(Permit<'_>, Call)> = Vec::new();
    for (number, &step) in steps.iter().enumerate() {
        match step {
            Step::Ask { wait } => match (breaker.permit_after(millis(wait)), model.ask(number, wait)) {
                (Ok(permit), Ok(call)) => running.push((permit, call)),
                (Err(open), Err(left)) if open.retry_in() == millis(left) => {}
                (found, expected) => return Err(format!("{number}: {found:?} and not {expected:?}")),
            },
            Step::End { which, how } if !running.is_empty() => {
                let (permit, call) = running.swap_remove(which % running.len());
                end(&breaker, permit, how, fault, model.is_late(call), model.is_expired(call));
                model.end(call, how);
            }
            Step::End { .. } => {}
            Step::Pass(passes) => {
                time.advance(millis(passes));
                model.now += passes;
            }
            Step::Keep => {
                let found = breaker.state();
                let expected = model.keep();
                if as_kept(found, started) != expected {
                    return Err(format!("{number}: {found:?} and not {expected:?}"));
                }
                state = Some(found);
            }
            Step::Restore => {
                if let (Some(state), Some(kept)) = (state, model.kept) {
                    breaker.restore(gone_on_from(state, fault, model.now - kept.at, settings));
                    model.restore(kept);
                }
            }
        }
        if breaker.phase() != model.phase() {
            return Err(format!("{number}: {:?} and not {:?} after {step:?}", breaker.phase(), model.phase()));
        }
    }
    Ok(())
}

fn any_settings() -> impl Strategy<Value = Settings> {
    (1..=100_u32, 1..6_u32, 1..20_u64, 1..8_000_u64, 1..30_000_u64, 1..4_u32, 1..9_000_u64).prop_map(
        |(percent, min_calls, window, open_for, max_open, probes, lease)| Settings {
            percent,
            min_calls,
            window: window * 1000,
            open_for,
            max_open,
            probes,
            lease,
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        3 => Just(End::Succeeds),
        4 => Just(End::Fails),
        1 => Just(End::Unknown),
        1 => Just(End::Permanent),
        1 => Just(End::Gone),
        1 => Just(End::Dropped),
        1 => Just(End::Panics),
    ];
    prop_oneof![
        4 => prop_oneof![3 => Just(0), 1 => 0..5_000_u64].prop_map(|wait| Step::Ask { wait }),
        4 => (any::<usize>(), how).prop_map(|(which, how)| Step::End { which, how }),
        2 => (0..6_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Keep),
        1 => Just(Step::Restore),
    ]
}

fn run(cases: u32, fault: Fault) -> Result<(), String> {
    let mut runner = TestRunner::new_with_rng(
        Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let steps = prop::collection::vec(any_step(), 0..150);
    let outcome = runner.run(&(any_settings(), steps), |(settings, steps)| {
        compare(settings, &steps, fault).map_err(TestCaseError::fail)
    });
    outcome.map_err(|error| error.to_string())
}

// 8.1, 8.2
#[test]
fn it_does_what_the_model_does() {
    run(1_500, Fault::None).unwrap();
}

// 8.2
#[test]
fn each_of_these_faults_is_caught() {
    for &fault in FAULTS {
        assert!(run(3_000, fault).is_err(), "{fault:?} was not told from the model");
    }
}
