//! What a run did, and what the judge found.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::plan::{Fault, Plan};

/// The outcome of a run. Prints the seed, the counts, what was skipped and every rule that was broken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a report that nobody looks at proves nothing"]
#[non_exhaustive]
pub struct Report {
    /// The plan's name.
    pub name: String,
    /// The seed: `CHAOS_SEED` makes the same choices again.
    pub seed: u64,
    /// Lives of workers that ended by a kill, by where: a failpoint's name, or `anywhere`.
    pub kills: BTreeMap<String, u64>,
    /// The faults that were inflicted, and how often.
    pub inflicted: BTreeMap<Fault, u64>,
    /// Faults of the plan that this store, or this place, cannot be tried for.
    pub skipped: Vec<Fault>,
    /// Parkings the store said it took.
    pub accepted: u64,
    /// Of those, the ones it spilled.
    pub spilled: u64,
    /// Accepted parkings that are outside the store at the end, and accounted for there.
    pub elsewhere: u64,
    /// Letters at the end, by state.
    pub letters: BTreeMap<String, u64>,
    /// Replays that were handed out.
    pub claims: u64,
    /// Results that the store took.
    pub results: u64,
    /// Results that came too late, and are recorded.
    pub late: u64,
    /// Replays that died.
    pub crashes: u64,
    /// Letters that were closed by a success and opened again by a new failure.
    pub reopened: u64,
    /// Letters whose history was too long to be kept whole: of them less can be said.
    pub cut: u64,
    /// Verbs that failed, and how often: outages show here.
    pub refused: BTreeMap<String, u64>,
    /// Where the witnesses' files are kept; only after a failed run.
    pub kept: Option<PathBuf>,
    /// Every rule that was broken, with its number and the letter.
    pub broken: Vec<String>,
}

impl Report {
    pub(super) fn new(plan: &Plan) -> Self {
        Self { name: plan.name.clone(), seed: plan.seed, ..Self::default() }
    }

    /// Whether every rule was kept.
    pub fn passed(&self) -> bool {
        self.broken.is_empty()
    }

    /// How many workers were killed.
    pub fn killed(&self) -> u64 {
        self.kills.values().sum()
    }

    /// Panics with the whole report, unless every rule was kept.
    ///
    /// # Panics
    /// When a rule was broken: that is what a test wants.
    #[track_caller]
    #[allow(clippy::panic, reason = "an assertion for tests")]
    pub fn assert_passed(&self) {
        assert!(self.passed(), "the rules are not kept under chaos\n{self}");
    }
}

/// At most so many broken rules are printed: one fault breaks the same one again and again.
const PRINTED: usize = 20;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "chaos {}: CHAOS_SEED={}, {} kills", self.name, self.seed, self.killed())?;
        for (place, n) in &self.kills {
            writeln!(f, "  {n:>6}  killed at {place}")?;
        }
        for (fault, n) in &self.inflicted {
            writeln!(f, "  {n:>6}  {fault}")?;
        }
        for fault in &self.skipped {
            writeln!(f, "  SKIPPED {fault}: this harness cannot inflict it here")?;
        }
        writeln!(
            f,
            "  {} parkings accepted ({} spilled, {} outside the store now), {} claims, {} results, {} late, {} crashes, {} reopened, {} histories cut",
            self.accepted,
            self.spilled,
            self.elsewhere,
            self.claims,
            self.results,
            self.late,
            self.crashes,
            self.reopened,
            self.cut
        )?;
        for (what, counts) in [("letters", &self.letters), ("refused", &self.refused)] {
            let counts: Vec<_> = counts.iter().map(|(name, n)| format!("{n} {name}")).collect();
            writeln!(f, "  {what}: {}", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") })?;
        }
        for broken in self.broken.iter().take(PRINTED) {
            writeln!(f, "BROKEN {broken}")?;
        }
        if let Some(more) = self.broken.len().checked_sub(PRINTED).filter(|more| *more > 0) {
            writeln!(f, "BROKEN {more} more")?;
        }
        if let Some(kept) = &self.kept {
            writeln!(f, "what the workers told is kept in {}", kept.display())?;
        }
        write!(f, "{} rules broken", self.broken.len())
    }
}
