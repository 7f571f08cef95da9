//! What the checks found.

use std::fmt;

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The number of the rule it proves.
    pub rule: &'static str,
    /// The check's name: the rule in words.
    pub name: &'static str,
    /// What was wrong; `None` when it passed.
    pub failure: Option<String>,
}

/// The outcomes of all checks. Prints as one line per check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a report that nobody looks at proves nothing"]
pub struct Report {
    outcomes: Vec<Outcome>,
}

impl Report {
    pub(super) fn of(outcomes: Vec<Outcome>) -> Self {
        Self { outcomes }
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.outcomes.extend(other.outcomes);
    }

    /// Every check, in order.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// The checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.failure.is_some())
    }

    /// Whether every check passed.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Panics with every failed check, unless all passed.
    ///
    /// # Panics
    /// When a check failed: that is what a test wants.
    #[track_caller]
    #[allow(clippy::panic, reason = "an assertion for tests")]
    pub fn assert_passed(&self) {
        assert!(self.passed(), "the rules are not kept\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for outcome in &self.outcomes {
            match &outcome.failure {
                None => writeln!(f, "ok    {:6} {}", outcome.rule, outcome.name)?,
                Some(failure) => writeln!(f, "FAIL  {:6} {}: {failure}", outcome.rule, outcome.name)?,
            }
        }
        write!(f, "{} checks, {} failed", self.outcomes.len(), self.failures().count())
    }
}
