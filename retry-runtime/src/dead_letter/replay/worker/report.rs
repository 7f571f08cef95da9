//! What a worker did.

use std::collections::BTreeMap;
use std::fmt;

/// What a [`ReplayWorker`](crate::dead_letter::ReplayWorker) did since it was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerReport {
    /// Letters replayed, and done.
    pub recovered: u64,
    /// Replayed, and parked again.
    pub still_failing: u64,
    /// Replayed, and given up: they failed too often.
    pub abandoned: u64,
    /// Replayed, and there is nothing any more.
    pub gone: u64,
    /// Given back, because their handler could not be started, or their payload not be read.
    pub not_started: u64,
    /// Their lease had gone when the result came: recorded as late.
    pub late: u64,
    /// Operations that were run, to their end or not. Their letters are not counted above: the operation counts them.
    pub operations: u64,
    /// How often the store failed, or nothing could be started.
    pub failures: u64,
    /// The error classes of parked letters that were left out as permanent when it started, and how many of each.
    pub left_out: BTreeMap<String, u64>,
}

impl WorkerReport {
    /// All letters that were taken and are done with.
    pub const fn letters(&self) -> u64 {
        self.recovered + self.still_failing + self.abandoned + self.gone + self.not_started + self.late
    }

    /// The classes left out, for people, the largest first; empty when there are none.
    pub(super) fn left_out(&self) -> String {
        let mut classes: Vec<_> = self.left_out.iter().collect();
        // Stable: ties stay in the order of their names.
        classes.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let classes: Vec<_> = classes.into_iter().map(|(class, n)| format!("{n} {class}")).collect();
        classes.join(", ")
    }
}

/// `12 letters: 9 recovered, 2 still failing, 1 abandoned, 0 gone; 1 operation`, and what else is not zero.
impl fmt::Display for WorkerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recovered, still_failing, abandoned, gone, .. } = self;
        write!(f, "{}: {recovered} recovered, ", counted(self.letters(), "letter"))?;
        write!(f, "{still_failing} still failing, {abandoned} abandoned, {gone} gone")?;
        for (n, what) in [(self.not_started, "not started"), (self.late, "with a late result")] {
            if n > 0 {
                write!(f, ", {n} {what}")?;
            }
        }
        for (n, what) in [(self.operations, "operation"), (self.failures, "failure")] {
            if n > 0 {
                write!(f, "; {}", counted(n, what))?;
            }
        }
        if !self.left_out.is_empty() {
            write!(f, "; left out as permanent: {}", self.left_out())?;
        }
        Ok(())
    }
}

fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D12: what is left out is printed.
    #[test]
    fn a_report_is_one_line() {
        let mut report = WorkerReport::default();
        assert_eq!(report.to_string(), "0 letters: 0 recovered, 0 still failing, 0 abandoned, 0 gone");
        (report.recovered, report.late, report.operations, report.failures) = (1, 1, 1, 2);
        report.left_out =
            [("permanent:401", 2), ("permanent:403", 9), ("no_such", 2)].map(|(class, n)| (class.to_owned(), n)).into();
        assert_eq!(
            report.to_string(),
            "2 letters: 1 recovered, 0 still failing, 0 abandoned, 0 gone, 1 with a late result; 1 operation; 2 failures; \
             left out as permanent: 9 permanent:403, 2 no_such, 2 permanent:401"
        );
    }
}
