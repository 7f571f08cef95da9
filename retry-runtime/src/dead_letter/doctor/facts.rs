//! What every store can tell of its letters, and the findings that follow.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Checkup, Finding, Severity};
use crate::dead_letter::LetterState;

/// What a store counted; [`findings`](Self::findings) says what it means. For whoever writes a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LetterFacts {
    /// Letters in state `abandoned`.
    pub abandoned: u64,
    /// Letters in state `replaying` whose lease has been over for longer than [`OVERDUE`](Self::OVERDUE).
    pub overdue: u64,
    /// Parked letters by kind.
    pub waiting: BTreeMap<String, u64>,
    /// The kinds that were claimed lately, where the store knows: they count as handled when nobody names any.
    pub claimed_kinds: Vec<String>,
    /// Letters whose newest failure lies more than [`AHEAD`](Self::AHEAD) in the future.
    pub ahead: u64,
    /// Parked letters whose stored payload a rule altered ([`LetterRow::payload_altered`]).
    ///
    /// [`LetterRow::payload_altered`]: crate::dead_letter::LetterRow::payload_altered
    pub altered: u64,
    /// Only some letters were looked at for [`altered`](Self::altered): there may be more.
    pub altered_of_some: bool,
    /// Letters that were lost in the last 30 days (counter `lost` of operation `dead_letter`).
    pub lost: u64,
    /// The same letters, counted in several ways.
    pub counted: Vec<Counted>,
}

/// How many letters of a state there are, by each way to count them. They must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The state.
    pub state: LetterState,
    /// Rows there are.
    pub rows: u64,
    /// Rows that lists show.
    pub listed: u64,
    /// What summaries say.
    pub summed: u64,
}

impl LetterFacts {
    /// Two usual leases: nothing that lives takes so long to take a lease back.
    pub const OVERDUE: Duration = Duration::from_secs(120);

    /// As far as clocks may differ.
    pub const AHEAD: Duration = Duration::from_secs(300);

    /// What follows, in no order.
    pub fn findings(&self, checkup: &Checkup) -> Vec<Finding> {
        let mut found = Vec::new();
        if self.lost > 0 {
            let message = format!(
                "{} lost in the last 30 days: store and spill had both failed",
                some(self.lost, "letter was", "letters were")
            );
            found
                .push(Finding::new(Severity::Error, "lost", message).advise(
                    "look for `LOST letter` in the programs' stderr: each line names the job; run those again",
                ));
        }
        found.extend(self.counted.iter().filter(|count| !count.agrees()).map(Counted::finding));
        if self.overdue > 0 {
            let message = format!(
                "{} `replaying` although the lease is long over",
                some(self.overdue, "letter is", "letters are")
            );
            found.push(
                Finding::new(Severity::Warning, "overdue_leases", message)
                    .advise("whoever ran them is gone: the next real `dlq replay`, `dlq release ID`, or a program that opens the store takes them back"),
            );
        }
        if self.abandoned > 0 {
            let message = format!(
                "{} given up after too many replays or crashes",
                some(self.abandoned, "letter was", "letters were")
            );
            found.push(
                Finding::new(Severity::Warning, "abandoned", message)
                    .advise("look at their errors, then restore them with a grant of replays, or discard them"),
            );
        }
        if self.altered > 0 {
            let least = if self.altered_of_some { "at least " } else { "" };
            let message = format!(
                "{least}{} parked letters were altered by a rule of redaction when they were stored: replays pass over them",
                self.altered
            );
            found.push(
                Finding::new(Severity::Warning, "altered", message).advise(
                    "edit each to give it a whole payload, or replay with force, which runs it as it is stored",
                ),
            );
        }
        if self.ahead > 0 {
            let message = format!("{} letters failed in the future: a clock was, or is, wrong", self.ahead);
            found.push(
                Finding::new(Severity::Warning, "clock_ahead", message)
                    .advise("compare the clocks of the machines; leases end early where a clock runs ahead"),
            );
        }
        found.extend(self.blocked(checkup));
        found
    }

    /// Kinds that wait for a handler nobody has: usually a function that was renamed.
    fn blocked(&self, checkup: &Checkup) -> Vec<Finding> {
        let handled = match &checkup.handled_kinds {
            Some(named) => named,
            // Nothing was claimed: nothing is known.
            None if self.claimed_kinds.is_empty() => return Vec::new(),
            None => &self.claimed_kinds,
        };
        let blocked = self.waiting.iter().filter(|(kind, n)| **n > 0 && !handled.contains(kind));
        blocked
            .map(|(kind, n)| {
                let message = format!("{n} parked letters of kind `{kind}` are blocked: no handler takes that kind");
                Finding::new(Severity::Warning, "blocked", message).about(kind).advise(
                    "a letter's kind is its operation's name: after a function was renamed, replay the old kind with the \
                     new handler, or keep the old word with `name = ..`",
                )
            })
            .collect()
    }
}

impl Counted {
    const fn agrees(&self) -> bool {
        self.rows == self.listed && self.rows == self.summed
    }

    fn finding(&self) -> Finding {
        let Self { state, rows, listed, summed } = self;
        let message = format!("{rows} letters are `{state}`, lists show {listed}, the summary says {summed}");
        Finding::new(Severity::Error, "counts_differ", message)
            .about(state.as_str())
            .advise("the file may be damaged: back it up, run a full examination, and export what it holds")
    }
}

/// `1 letter is`, `2 letters are`.
fn some(n: u64, one: &str, more: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { more })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(facts: &LetterFacts, checkup: &Checkup) -> Vec<&'static str> {
        facts.findings(checkup).into_iter().map(|found| found.code).collect()
    }

    #[test]
    fn a_store_without_faults_has_no_findings() {
        let facts = LetterFacts {
            waiting: BTreeMap::from([("fetch".to_owned(), 7)]),
            counted: vec![Counted { state: LetterState::Parked, rows: 7, listed: 7, summed: 7 }],
            ..LetterFacts::default()
        };
        assert_eq!(codes(&facts, &Checkup::quick().handling(["fetch"])), [""; 0]);
    }

    // A3
    #[test]
    fn counts_that_differ_are_found() {
        for (listed, summed) in [(6, 7), (7, 6), (8, 7)] {
            let counted = vec![Counted { state: LetterState::Parked, rows: 7, listed, summed }];
            let facts = LetterFacts { counted, ..LetterFacts::default() };
            assert_eq!(codes(&facts, &Checkup::quick()), ["counts_differ"]);
        }
    }

    #[test]
    fn altered_letters_are_found() {
        for (altered_of_some, begin) in [(false, "3 parked"), (true, "at least 3 parked")] {
            let facts = LetterFacts { altered: 3, altered_of_some, ..LetterFacts::default() };
            let found = facts.findings(&Checkup::quick());
            assert_eq!(codes(&facts, &Checkup::quick()), ["altered"]);
            assert!(found.iter().all(|found| found.message.starts_with(begin)), "{found:?}");
        }
    }

    // D2: the old name's letters wait for ever, and somebody has to say so
    #[test]
    fn a_kind_without_a_handler_is_blocked() {
        let waiting = BTreeMap::from([("old_name".to_owned(), 3), ("fetch".to_owned(), 1), ("none".to_owned(), 0)]);
        let facts = LetterFacts { waiting, ..LetterFacts::default() };
        assert_eq!(codes(&facts, &Checkup::quick()), [""; 0], "nobody knows the handlers");
        let found = facts.findings(&Checkup::full().handling(["fetch"]));
        assert_eq!(found.iter().map(|found| found.subject.as_str()).collect::<Vec<_>>(), ["old_name"]);
        let claimed = LetterFacts { claimed_kinds: vec!["old_name".to_owned()], ..facts };
        let found = claimed.findings(&Checkup::quick());
        assert_eq!(found.iter().map(|found| found.subject.as_str()).collect::<Vec<_>>(), ["fetch"]);
    }
}
