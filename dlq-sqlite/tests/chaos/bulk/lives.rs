//! What the processes do that fight for one operation: runners, and an operator. Each tells what it saw in a file outside
//! the store.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{
    Actor, BulkOperations, DeadLetterSink, DeadLetterStore, ItemOutcome, OperationRunner, OperationStatus, ReplayError,
    ReplayJob, Steer,
};
use retry_runtime::error::StoreErrorKind;
use retry_runtime::testing::store_chaos::Dice;

use crate::support::{letter, wait};

/// How long a runner, and a letter, is kept from others without a sign of life.
pub(super) const LEASE: Duration = Duration::from_millis(400);

/// The operator's name among lives.
pub(super) const OPERATOR: usize = usize::MAX;

/// One life of one process.
#[derive(Clone)]
pub(super) struct Life {
    pub(super) place: PathBuf,
    pub(super) op_id: String,
    pub(super) worker: usize,
    pub(super) nth: u64,
    pub(super) seed: u64,
}

impl Life {
    pub(super) fn to_text(&self) -> String {
        let Self { place, op_id, worker, nth, seed } = self;
        format!("{worker}|{nth}|{seed}|{op_id}|{}", place.display())
    }

    pub(super) fn parse(text: &str) -> Self {
        let mut words = text.splitn(5, '|');
        let mut word = || words.next().unwrap();
        let (worker, nth, seed) = (word().parse().unwrap(), word().parse().unwrap(), word().parse().unwrap());
        Self { worker, nth, seed, op_id: word().to_owned(), place: word().into() }
    }

    fn name(&self) -> String {
        if self.worker == OPERATOR { "operator".to_owned() } else { format!("runner-{}", self.worker) }
    }

    pub(super) fn witness(&self) -> PathBuf {
        self.place.join(format!("witness-{}-{:05}.log", self.name(), self.nth))
    }

    pub(super) fn stderr(&self) -> PathBuf {
        self.place.join(format!("stderr-{}-{:05}.log", self.name(), self.nth))
    }

    fn dice(&self) -> Dice {
        Dice::new(self.seed ^ (self.worker as u64).rotate_left(32) ^ self.nth.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Works until it is killed, or until the operation is over.
    pub(super) fn live(&self) -> ! {
        thread::spawn(|| {
            // The other end is closed when the run ends, however it does.
            let _end = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
        let witness = Arc::new(Witness::open(&self.witness()));
        let store = loop {
            match open(&self.place) {
                Ok(store) => break store,
                // An armed life fails where it is told to, and tries again.
                Err(error) => witness.tell(&format!("refused open {error}")),
            }
            thread::sleep(Duration::from_millis(5));
        };
        if self.worker == OPERATOR {
            self.operate(&store, &witness);
        } else {
            self.run(&store, &witness);
        }
        std::process::exit(0)
    }

    fn run(&self, store: &SqliteStore, witness: &Arc<Witness>) {
        let mut dice = self.dice();
        loop {
            let told = Arc::clone(witness);
            let name = format!("{}-{}", self.name(), self.nth);
            let mut runner = OperationRunner::new(store.clone()).name(name).lease(LEASE);
            if dice.one_in(3) {
                runner = runner.take_over();
            }
            match runner.on_blocking("fetch", move |job| handle(&job, &told)).run_blocking(self.op_id.as_str()) {
                Ok(operation) if operation.status.is_over() => return,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::StaleLease) => {}
                Err(error) => witness.tell(&format!("refused run {error}")),
            }
            thread::sleep(Duration::from_millis(10 + dice.below(90)));
        }
    }

    /// Pauses, resumes, and is at the letters meanwhile.
    fn operate(&self, store: &SqliteStore, witness: &Witness) {
        let mut dice = self.dice();
        let steer = |steer| block_on(store.steer(self.op_id.clone(), steer, ada()));
        loop {
            match block_on(store.operation(self.op_id.clone())).ok().flatten().map(|operation| operation.status) {
                Some(status) if status.is_over() => return,
                // One that another life has paused, or that waits for handlers, too.
                Some(OperationStatus::Paused) => drop(steer(Steer::Resume)),
                _ => {}
            }
            match dice.below(4) {
                0 => {
                    drop(steer(Steer::Pause));
                    thread::sleep(Duration::from_millis(dice.below(30)));
                    drop(steer(Steer::Resume));
                }
                1 => {
                    let job = format!("later-{}-{}", self.nth, dice.below(1 << 40));
                    witness.tell(&format!("later {job}"));
                    drop(wait(store.submit(letter(&job))));
                }
                2 => {
                    if let Some(id) = self.member(store, ItemOutcome::Pending, &mut dice) {
                        witness.tell(&format!("discarding {id}"));
                        drop(block_on(store.discard(id, ada())));
                    }
                }
                // It was recovered, and fails again: a matter for the next operation.
                _ => {
                    if let Some(id) = self.member(store, ItemOutcome::Recovered, &mut dice)
                        && let Ok(Some(detail)) = block_on(store.get(id.clone()))
                    {
                        witness.tell(&format!("again {id}"));
                        drop(wait(store.submit(letter(&detail.row.job_id))));
                    }
                }
            }
            thread::sleep(Duration::from_millis(10 + dice.below(30)));
        }
    }

    fn member(&self, store: &SqliteStore, outcome: ItemOutcome, dice: &mut Dice) -> Option<String> {
        let page = block_on(store.items(self.op_id.clone(), Some(outcome), None, 50)).ok()?;
        dice.pick(&page.items)?.letter_id.clone()
    }
}

/// What becomes of a job, by its number; some cannot be started at first.
fn handle(job: &ReplayJob, witness: &Witness) -> Result<(), ReplayError> {
    let ReplayJob { letter_id, fence, job_id, .. } = job;
    witness.tell(&format!("begin {letter_id} {fence} {job_id}"));
    thread::sleep(Duration::from_millis(3));
    let number: u32 = job_id.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let (word, result) = match number % 20 {
        3 | 13 => ("failed", Err(ReplayError::failed("429 Too Many Requests"))),
        7 => ("gone", Err(ReplayError::gone("404 Not Found"))),
        11 if *fence == 1 => ("not_started", Err(ReplayError::not_started("no connection"))),
        _ => ("ok", Ok(())),
    };
    witness.tell(&format!("end {letter_id} {fence} {word}"));
    result
}

pub(super) fn open(place: &Path) -> Result<SqliteStore, dlq_sqlite::OpenError> {
    let options = SqliteStore::options(place.join("jobs.db")).reserve(false).spill_dirs([place.join("spill")]);
    options.busy_limit(Duration::from_secs(2)).open()
}

pub(super) fn ada() -> Actor {
    Actor::new("ada", "the quota was raised")
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

struct Witness(File);

impl Witness {
    fn open(path: &Path) -> Self {
        Self(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    /// In one write: what is written is there, whenever the process is killed.
    fn tell(&self, line: &str) {
        (&self.0).write_all(format!("{}\n", line.replace('\n', " ")).as_bytes()).unwrap();
    }
}
