//! What a run does.

use std::fmt;
use std::time::Duration;

use super::dice::fresh_seed;

/// What can be done to a store besides killing its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// Handlers that take longer than their lease. Every store can have that.
    OutlivedLease,
    /// Clocks that jump, ahead and back.
    ClockJumps,
    /// No space is left.
    FullDisk,
    /// Somebody else holds the store's lock for longer than it waits.
    LockedFile,
    /// What is stored is damaged.
    Corruption,
}

impl Fault {
    /// Every fault.
    pub const ALL: &'static [Self] =
        &[Self::OutlivedLease, Self::ClockJumps, Self::FullDisk, Self::LockedFile, Self::Corruption];

    /// Whether the run itself brings it about.
    pub(super) const fn is_of_workers(self) -> bool {
        matches!(self, Self::OutlivedLease | Self::ClockJumps)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::OutlivedLease => "handlers that outlive their lease",
            Self::ClockJumps => "clock jumps",
            Self::FullDisk => "full disk",
            Self::LockedFile => "locked file",
            Self::Corruption => "corruption",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much chaos, and from which seed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a plan does nothing before `store_chaos::run`"]
pub struct Plan {
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) workers: usize,
    pub(super) kills: u64,
    pub(super) jobs: u64,
    pub(super) lease: Duration,
    pub(super) faults: Vec<Fault>,
}

impl Plan {
    /// 4 workers, 200 kills, 100 jobs that fail again and again, leases of 300 ms, every fault. `name` is the test that
    /// calls [`run`](super::run), as the test harness prints it: worker processes are this test, started again.
    ///
    /// The seed is a fresh one, unless the environment variable `CHAOS_SEED` gives it.
    pub fn new(name: impl Into<String>) -> Self {
        let seed = std::env::var("CHAOS_SEED").ok().and_then(|seed| seed.trim().parse().ok());
        Self {
            name: name.into(),
            seed: seed.unwrap_or_else(fresh_seed),
            workers: 4,
            kills: 200,
            jobs: 100,
            lease: Duration::from_millis(300),
            faults: Fault::ALL.to_vec(),
        }
    }

    /// A seed of your own, whatever the environment says.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many workers live at a time; at least 1.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How many lives end by a kill.
    pub const fn kills(mut self, kills: u64) -> Self {
        self.kills = kills;
        self
    }

    /// How many jobs there are: few are merged and opened again often, many make many letters; at least 1.
    pub fn jobs(mut self, jobs: u64) -> Self {
        self.jobs = jobs.max(1);
        self
    }

    /// How long leases last; at least 1 ms. For worker processes in real time.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_millis(1));
        self
    }

    /// Only these faults.
    pub fn faults(mut self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.faults = faults.into_iter().collect();
        self
    }

    pub(super) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }
}
