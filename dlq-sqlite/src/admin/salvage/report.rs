//! What was saved, and what was not.

use std::fmt;
use std::path::PathBuf;

/// What was saved of a damaged file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// The store with what was read: a file of its own.
    pub path: PathBuf,
    /// What the damaged file is known by: the SHA-256 of its bytes and its log's, in hexadecimal.
    pub digest: String,
    /// Letters.
    pub letters: u64,
    /// Letters the file said it had, where it can still say so.
    pub of: Option<u64>,
    /// Keys of the ledger.
    pub ledger: u64,
    /// Daily counters, each of a day.
    pub counters: u64,
    /// Whether the first page was damaged, and a fresh store's took its place.
    pub header_mended: bool,
    /// Places where letters could not be read: each is a page or a row.
    pub gaps: u64,
    /// Letters that have lost their payload.
    pub without_payload: u64,
    /// Places where payloads, attempts, events or parkings could not be read.
    pub gaps_in_history: u64,
    /// Places where ledger, counters, thresholds or notes could not be read.
    pub gaps_in_books: u64,
    /// Pages in the log.
    pub log_pages: u64,
    /// Pages of the log that are damaged, or that no whole commit follows: what they changed is perhaps missing.
    pub log_pages_lost: u64,
    /// Jobs that were written down before they began, and had no end yet. They are not taken along: whoever ran them may
    /// have done them since.
    pub under_way: u64,
    /// Bulk operations that were not over. They are not taken along: their letters are.
    pub operations: u64,
}

impl Salvaged {
    /// What could not be saved, a sentence each; none where everything was.
    pub fn losses(&self) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(missing) = self.of.and_then(|of| of.checked_sub(self.letters)).filter(|missing| *missing > 0) {
            said.push(format!("{missing} letters are missing"));
        }
        for (n, what) in [
            (self.gaps, "places of letters could not be read"),
            (self.without_payload, "letters have lost their payload"),
            (self.gaps_in_history, "places of their histories and payloads could not be read"),
            (self.gaps_in_books, "places of ledger, counters and notes could not be read"),
            (self.log_pages_lost, "pages of the log could not be read: what was written last is perhaps missing"),
            (self.under_way, "jobs were under way, written down and without an end: whoever ran them knows it"),
            (self.operations, "bulk operations were not over: start them again"),
        ] {
            if n > 0 {
                said.push(format!("{n} {what}"));
            }
        }
        said
    }
}

/// In a line, with what was lost behind it.
impl fmt::Display for Salvaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} letters", self.letters)?;
        if let Some(of) = self.of {
            write!(f, " of {of}")?;
        }
        write!(f, ", {} keys of the ledger, {} daily counters in {}", self.ledger, self.counters, self.path.display())?;
        if self.header_mended {
            f.write_str(", behind a first page that was damaged")?;
        }
        self.losses().iter().try_for_each(|loss| write!(f, ", {loss}"))
    }
}
