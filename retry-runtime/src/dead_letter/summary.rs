//! What is owed, in the lines operators and scripts read.

use std::collections::BTreeMap;
use std::fmt;

use crate::dead_letter::LetterState;

/// Counts of everything that is owed.
///
/// ```
/// use retry_runtime::dead_letter::{LetterState, Summary};
///
/// let mut summary = Summary::default();
/// assert_eq!(summary.to_string(), "dead-letter: clean (0 parked)");
/// summary.add(LetterState::Parked, "permanent:403", 2);
/// summary.add(LetterState::Parked, "exhausted:429", 10);
/// summary.add(LetterState::Abandoned, "exhausted:429", 1);
/// assert_eq!(
///     summary.to_string(),
///     "dead-letter: 12 parked\n    10  exhausted:429\n     2  permanent:403\n     1  abandoned",
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Parked letters by error class.
    pub parked: BTreeMap<String, u64>,
    /// Letters being replayed.
    pub replaying: u64,
    /// Letters given up after too many replays.
    pub abandoned: u64,
    /// Lines that wait in spill files.
    pub spilled: u64,
    /// Jobs in the journal of processes that died: they are parked when leases are next taken back.
    pub orphaned: u64,
    /// Files that a store found corrupt and set aside: what they hold waits to be salvaged, and is counted nowhere else.
    pub set_aside: u64,
}

impl Summary {
    /// Counts `n` letters of a state and an error class. States that are not owed change nothing.
    pub fn add(&mut self, state: LetterState, error_class: &str, n: u64) {
        match state {
            LetterState::Parked if n > 0 => *self.parked.entry(error_class.to_owned()).or_default() += n,
            LetterState::Replaying => self.replaying += n,
            LetterState::Abandoned => self.abandoned += n,
            LetterState::Parked | LetterState::Recovered | LetterState::Discarded => {}
        }
    }

    /// Parked letters.
    pub fn total_parked(&self) -> u64 {
        self.parked.values().sum()
    }

    /// Everything somebody still has to look at.
    pub fn owed(&self) -> u64 {
        self.total_parked() + self.replaying + self.abandoned
    }

    /// Nothing is owed, no spill line waits, and no job of a dead process. What files that were [set aside](Self::set_aside) hold is not known, and not
    /// asked here.
    pub fn is_clean(&self) -> bool {
        self.owed() == 0 && self.spilled == 0 && self.orphaned == 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            f.write_str("dead-letter: clean (0 parked)")?;
        } else {
            write!(f, "dead-letter: {} parked", self.total_parked())?;
        }
        let mut classes: Vec<_> = self.parked.iter().collect();
        // The map is in order of names and the sort is stable: ties stay in that order.
        classes.sort_by(|a, b| b.1.cmp(a.1));
        for (class, n) in classes {
            write!(f, "\n  {n:>4}  {class}")?;
        }
        for (n, what) in [
            (self.replaying, "replaying"),
            (self.abandoned, "abandoned"),
            (self.spilled, "spilled"),
            (self.orphaned, "of processes that died, not parked yet"),
            (self.set_aside, "file(s) set aside as corrupt"),
        ] {
            if n > 0 {
                write!(f, "\n  {n:>4}  {what}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // B1.9, D10
    #[test]
    fn the_largest_class_is_first_and_ties_go_by_name() {
        let mut summary = Summary::default();
        for (class, n) in [("permanent:403", 3), ("exhausted:429", 5), ("exhausted:timeout", 3), ("unknown", 12345)] {
            summary.add(LetterState::Parked, class, n);
        }
        let text = "dead-letter: 12356 parked\n  12345  unknown\n     5  exhausted:429\n     3  exhausted:timeout\n     3  permanent:403";
        assert_eq!(summary.to_string(), text);
    }

    // D10
    #[test]
    fn a_waiting_spill_line_or_a_running_replay_is_not_clean() {
        let spilled = Summary { spilled: 2, ..Summary::default() };
        assert_eq!(spilled.to_string(), "dead-letter: 0 parked\n     2  spilled");
        let replaying = Summary { replaying: 1, ..Summary::default() };
        assert_eq!(replaying.to_string(), "dead-letter: 0 parked\n     1  replaying");
        let orphaned = Summary { orphaned: 3, ..Summary::default() };
        let text = "dead-letter: 0 parked\n     3  of processes that died, not parked yet";
        assert_eq!(orphaned.to_string(), text);
        let mut closed = Summary::default();
        closed.add(LetterState::Recovered, "exhausted", 7);
        closed.add(LetterState::Discarded, "exhausted", 7);
        assert!(closed.is_clean());
    }

    // D7, D10: said, also where nothing is owed
    #[test]
    fn a_file_that_was_set_aside_is_said() {
        let mut summary = Summary { set_aside: 1, ..Summary::default() };
        assert_eq!(summary.to_string(), "dead-letter: clean (0 parked)\n     1  file(s) set aside as corrupt");
        summary.add(LetterState::Parked, "exhausted:429", 2);
        summary.spilled = 3;
        assert_eq!(
            summary.to_string(),
            "dead-letter: 2 parked\n     2  exhausted:429\n     3  spilled\n     1  file(s) set aside as corrupt"
        );
    }
}
