//! Reports in one line, for people.

use std::collections::BTreeMap;
use std::fmt;

use super::{DueReport, EraseReport, ImportReport, PruneReport, Pruned};
use crate::counters::Utc;
use crate::dead_letter::LetterState;

/// `2 letters`; `1 letter`.
fn counted(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        _ => format!("{n} {what}s"),
    }
}

/// What is not zero, by commas, each behind one.
fn others(f: &mut fmt::Formatter<'_>, counts: &[(u64, &str)]) -> fmt::Result {
    for (n, what) in counts.iter().filter(|(n, _)| *n > 0) {
        write!(f, ", {}", counted(*n, what))?;
    }
    Ok(())
}

/// ` (3 recovered, 1 discarded)`; nothing where there is nothing.
fn by_state(f: &mut fmt::Formatter<'_>, letters: &BTreeMap<Pruned, u64>) -> fmt::Result {
    let of = |state| letters.iter().filter(|(what, _)| what.state == state).map(|(_, n)| n).sum::<u64>();
    let states: Vec<_> = LetterState::ALL.iter().map(|state| (of(*state), state)).filter(|(n, _)| *n > 0).collect();
    let states: Vec<_> = states.into_iter().map(|(n, state)| format!("{n} {state}")).collect();
    if states.is_empty() { Ok(()) } else { write!(f, " ({})", states.join(", ")) }
}

/// `4 letters deleted (3 recovered, 1 discarded), closed 2026-01-02T03:04:05Z to 2026-01-03T03:04:05Z, 2 payload files`.
impl fmt::Display for PruneReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.dry_run { "would be deleted" } else { "deleted" };
        write!(f, "{} {verb}", counted(self.total(), "letter"))?;
        by_state(f, &self.letters)?;
        if let Some((first, last)) = self.closed {
            write!(f, ", closed {} to {}", Utc(first), Utc(last))?;
        }
        others(f, &[(self.payload_files, "payload file")])?;
        if self.is_cut { f.write_str("; there may be more") } else { Ok(()) }
    }
}

/// `4 letters to be deleted (3 recovered, 1 discarded), the first at 2026-01-02T03:04:05Z`.
impl fmt::Display for DueReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to be deleted", counted(self.total(), "letter"))?;
        by_state(f, &self.letters)?;
        match self.first_at {
            Some(at) => write!(f, ", the first at {}", Utc(at)),
            None => Ok(()),
        }
    }
}

/// `3 new, 1 merged, 2 known, 1 line refused (the first is line 7: no letter); lines are missing`.
impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} new, {} merged, {} known", self.new, self.merged, self.known)?;
        if self.refused_lines > 0 {
            write!(f, ", {} refused", counted(self.refused_lines, "line"))?;
            if let Some((line, why)) = self.refused.first() {
                write!(f, " (the first is line {line}: {why})")?;
            }
        }
        if self.redacted {
            f.write_str("; redacted: replays pass over them")?;
        }
        if self.is_whole { Ok(()) } else { f.write_str("; the export is not whole") }
    }
}

/// `erased: 1 letter, 2 revisions, 3 attempts, 4 events; something is left: ...`.
impl fmt::Display for EraseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "erased: {}", counted(self.letters, "letter"))?;
        others(
            f,
            &[
                (self.revisions, "revision"),
                (self.attempts, "attempt"),
                (self.events, "event"),
                (self.payload_files, "payload file"),
                (self.spill_lines, "spill line"),
            ],
        )?;
        for (n, one, many) in [
            (self.ledger_entries, "ledger entry", "ledger entries"),
            (self.journal_entries, "journal entry", "journal entries"),
        ] {
            if n > 0 {
                write!(f, ", {n} {}", if n == 1 { one } else { many })?;
            }
        }
        if self.left.is_empty() { Ok(()) } else { write!(f, "; something is left: {}", self.left.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    fn at(days: u64) -> std::time::SystemTime {
        UNIX_EPOCH + Duration::from_secs(days * 86_400)
    }

    fn pruned(state: LetterState, kind: &str) -> Pruned {
        Pruned::new(state, kind, "exhausted:timeout")
    }

    #[test]
    fn deletions_in_one_line() {
        let mut report = PruneReport::default();
        assert_eq!(report.to_string(), "0 letters deleted");
        report.count(pruned(LetterState::Discarded, "fetch"), at(1));
        assert_eq!(
            report.to_string(),
            "1 letter deleted (1 discarded), closed 1970-01-02T00:00:00Z to 1970-01-02T00:00:00Z"
        );
        report.count(pruned(LetterState::Recovered, "fetch"), at(3));
        report.count(pruned(LetterState::Recovered, "store"), at(2));
        (report.dry_run, report.is_cut, report.payload_files) = (true, true, 1);
        assert_eq!(
            report.to_string(),
            "3 letters would be deleted (2 recovered, 1 discarded), closed 1970-01-02T00:00:00Z to 1970-01-04T00:00:00Z, \
             1 payload file; there may be more"
        );
        let mut due = DueReport::default();
        assert_eq!(due.to_string(), "0 letters to be deleted");
        due.count(pruned(LetterState::Recovered, "fetch"), 7, at(1));
        assert_eq!(due.to_string(), "7 letters to be deleted (7 recovered), the first at 1970-01-02T00:00:00Z");
    }

    #[test]
    fn imports_and_erasures_in_one_line() {
        let mut report = ImportReport { new: 3, known: 2, is_whole: true, ..ImportReport::default() };
        assert_eq!(report.to_string(), "3 new, 0 merged, 2 known");
        (report.refused, report.refused_lines) = (vec![(7, "no letter".into())], 2);
        (report.is_whole, report.redacted) = (false, true);
        assert_eq!(
            report.to_string(),
            "3 new, 0 merged, 2 known, 2 lines refused (the first is line 7: no letter); redacted: replays pass over them; \
             the export is not whole"
        );
        let mut report = EraseReport::default();
        assert_eq!(report.to_string(), "erased: 0 letters");
        (report.letters, report.revisions, report.ledger_entries) = (1, 2, 2);
        report.journal_entries = 1;
        report.left = vec!["a backup".into()];
        assert_eq!(
            report.to_string(),
            "erased: 1 letter, 2 revisions, 2 ledger entries, 1 journal entry; something is left: a backup"
        );
    }
}
