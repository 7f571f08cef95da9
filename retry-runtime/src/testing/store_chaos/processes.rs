//! Workers as processes, killed by SIGKILL.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::thread;
use std::time::{Duration, Instant};

use super::dice::Dice;
use super::harness::Harness;
use super::judge;
use super::plan::{Fault, Plan};
use super::report::Report;
use super::witness::{self, Event, Witness};
use super::work::{Pace, Worker, max_jump};
use crate::dead_letter::StoreClock;
use crate::dead_letter::executor::block_on;

const LIFE: &str = "CHAOS_LIFE";
const PLACE: &str = "CHAOS_PLACE";

/// A life that tells nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// So many kills between two faults, at most, and during one.
const QUIET: u64 = 20;
const FAULTY: u64 = 4;

/// A life is killed after it has told so many bytes, at most.
const TOLD: u64 = 12_000;

/// And so many during a fault, and after it: most of it is that nothing works.
const TOLD_IN_FAULT: u64 = 2_000;

/// The life that this process is.
pub(super) struct ThisLife {
    name: String,
    seed: u64,
    worker: usize,
    life: u64,
    place: PathBuf,
}

/// `None`: this process is no worker.
pub(super) fn this_life() -> Option<ThisLife> {
    let life = std::env::var(LIFE).ok()?;
    let mut words = life.splitn(4, ' ');
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
    let (worker, life, seed) = (number()?, number()?, number()?);
    let place = std::env::var_os(PLACE)?.into();
    Some(ThisLife { name: words.next()?.to_owned(), seed, worker: usize::try_from(worker).ok()?, life, place })
}

impl ThisLife {
    pub(super) fn is_of(&self, plan: &Plan) -> bool {
        self.name == plan.name
    }

    /// Works until it is killed, or until nobody is there who would kill it.
    pub(super) fn live<H: Harness>(&self, harness: &H, plan: &Plan) -> ! {
        thread::spawn(|| {
            // The other end is closed when the run ends, however it does.
            let _end = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
        let plan = plan.clone().seed(self.seed);
        let ahead = Arc::new(AtomicI64::new(0));
        let clock = StoreClock::ahead(Arc::clone(&ahead));
        if let Ok(witness) = Witness::open(&self.place, self.worker, self.life) {
            let store = loop {
                match harness.open(&self.place, clock.clone()) {
                    Ok(store) => break store,
                    // A fault may be at work; it passes.
                    Err(error) => {
                        let _told = witness.tell(Event::Refused, "open", 0, &format!("{:?}: {error}", error.kind()));
                        thread::sleep(Duration::from_millis(5));
                    }
                }
            };
            let id = (self.worker, self.life);
            let worker = Worker::new(&store, &plan, id, clock, Pace::Process { ahead }, witness);
            let _gone = block_on(worker.live(), FOR_EVER);
        }
        std::process::exit(0);
    }
}

const FOR_EVER: Duration = Duration::MAX;

/// A worker's process and what it is to be killed by.
struct Running {
    child: Child,
    life: u64,
    /// So many bytes it may tell.
    goal: u64,
    told: u64,
    /// When it told something last.
    at: Instant,
}

struct Run<'a, H> {
    harness: &'a H,
    plan: &'a Plan,
    place: &'a Path,
    dice: Dice,
    killed: u64,
    is_faulty: bool,
    report: &'a mut Report,
}

pub(super) fn run<H: Harness>(harness: &H, plan: &Plan, place: &Path, report: &mut Report) -> Result<(), String> {
    let of_others = plan.faults.iter().filter(|fault| !fault.is_of_workers());
    let faults: Vec<_> = of_others.copied().filter(|fault| harness.can(*fault, place)).collect();
    let mut run =
        Run { harness, plan, place, dice: Dice::part(plan.seed, u64::MAX), killed: 0, is_faulty: false, report };
    let mut workers: Vec<Running> = Vec::new();
    let result = run.all_kills(&mut workers, &faults);
    for running in &mut workers {
        let _gone = running.child.kill().and_then(|()| running.child.wait());
    }
    result?;
    let lease = u64::try_from(plan.lease.as_millis()).unwrap_or(u64::MAX);
    let ahead = i64::try_from(max_jump(lease) + 2 * lease).unwrap_or(i64::MAX);
    let clock = StoreClock::ahead(Arc::new(AtomicI64::new(ahead)));
    let store = harness.open(place, clock.clone()).map_err(|error| format!("the judge cannot open: {error}"))?;
    judge::judge(harness, place, &store, &clock, report);
    Ok(())
}

impl<H: Harness> Run<'_, H> {
    fn all_kills(&mut self, workers: &mut Vec<Running>, faults: &[Fault]) -> Result<(), String> {
        for worker in 0..self.plan.workers {
            workers.push(self.start(worker, 0)?);
        }
        let mut next = faults.iter().copied().cycle();
        while !self.is_over() {
            self.kill_some(workers, QUIET.min(self.plan.kills / 5 + 1))?;
            let Some(fault) = next.next().filter(|_| !self.is_over()) else { continue };
            self.harness.begin(fault, self.place).map_err(|why| format!("{fault} cannot be inflicted: {why}"))?;
            *self.report.inflicted.entry(fault).or_default() += 1;
            self.is_faulty = true;
            hurry(workers);
            let killed = self.kill_some(workers, FAULTY);
            self.is_faulty = false;
            // A store that takes its time to find out that the fault is over does not use up the run.
            hurry(workers);
            if fault == Fault::Corruption {
                for (worker, running) in workers.iter_mut().enumerate() {
                    self.kill(worker, running)?;
                }
            }
            self.harness.end(fault, self.place).map_err(|why| format!("{fault} does not end: {why}"))?;
            killed?;
            if fault == Fault::Corruption {
                for (worker, running) in workers.iter_mut().enumerate() {
                    *running = self.start(worker, running.life + 1)?;
                }
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let most = self.plan.kills.saturating_mul(2);
        self.killed >= self.plan.kills && (self.killed >= most || self.harness.is_enough(&self.report.kills))
    }

    /// Until so many more were killed.
    fn kill_some(&mut self, workers: &mut [Running], n: u64) -> Result<(), String> {
        let goal = self.killed + n;
        while self.killed < goal && !self.is_over() {
            let mut quiet = true;
            for (worker, running) in workers.iter_mut().enumerate() {
                if let Some(status) = running.child.try_wait().map_err(|error| error.to_string())? {
                    self.died(worker, running, status, None)?;
                } else if running.has_told(self.place, worker)? < running.goal {
                    continue;
                } else {
                    self.kill(worker, running)?;
                }
                *running = self.start(worker, running.life + 1)?;
                quiet = false;
            }
            if quiet {
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    fn start(&mut self, worker: usize, life: u64) -> Result<Running, String> {
        let exe = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(exe);
        command.args([&self.plan.name, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(LIFE, format!("{worker} {life} {} {}", self.plan.seed, self.plan.name)).env(PLACE, self.place);
        let stderr = File::create(self.stderr(worker, life)).map_err(|error| error.to_string())?;
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(stderr);
        let armed = self.harness.arm(&mut command, self.place, &self.report.kills, &mut self.dice);
        let goal = self.dice.below(TOLD) * if armed { 3 } else { 1 };
        let goal = if self.is_faulty { goal.min(TOLD_IN_FAULT) } else { goal };
        let child = command.spawn().map_err(|error| format!("a worker cannot be started: {error}"))?;
        Ok(Running { child, life, goal, told: 0, at: Instant::now() })
    }

    fn stderr(&self, worker: usize, life: u64) -> PathBuf {
        self.place.join(format!("stderr-{worker}-{life:05}.log"))
    }

    fn kill(&mut self, worker: usize, running: &mut Running) -> Result<(), String> {
        running.child.kill().map_err(|error| format!("worker {worker} cannot be killed: {error}"))?;
        let status = running.child.wait().map_err(|error| error.to_string())?;
        self.died(worker, running, status, Some("anywhere"))
    }

    /// Counts how a life ended: killed from here, or where it says itself.
    fn died(&mut self, worker: usize, running: &Running, status: ExitStatus, by: Option<&str>) -> Result<(), String> {
        let path = self.stderr(worker, running.life);
        let said = std::fs::read_to_string(&path).unwrap_or_default();
        let itself = said.lines().rev().find_map(|line| line.strip_prefix("died at "));
        let Some(at) = itself.or(by) else {
            return Err(format!("worker {worker}, life {}, ended by itself ({status}):\n{said}", running.life));
        };
        *self.report.kills.entry(at.to_owned()).or_default() += 1;
        self.killed += 1;
        self.harness.killed(self.place, None);
        // What lives have said matters only where a run fails, and then the last ones do.
        let _gone = std::fs::remove_file(path);
        Ok(())
    }
}

/// Those that live now tell a little more, and are killed.
fn hurry(workers: &mut [Running]) {
    for running in workers {
        running.goal = running.goal.min(running.told + TOLD_IN_FAULT);
    }
}

impl Running {
    /// How many bytes it has told.
    fn has_told(&mut self, place: &Path, worker: usize) -> Result<u64, String> {
        let told = std::fs::metadata(witness::path_of(place, worker, self.life)).map_or(0, |file| file.len());
        if told > self.told {
            (self.told, self.at) = (told, Instant::now());
        } else if self.at.elapsed() > PATIENCE {
            return Err(format!("worker {worker}, life {}, has told nothing for {PATIENCE:?}", self.life));
        }
        Ok(told)
    }
}
