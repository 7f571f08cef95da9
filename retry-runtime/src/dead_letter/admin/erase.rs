//! Erasing everything of one job, where a law or a person demands it.

/// What is to be erased. Unlike retention, this takes letters that are still owed, too.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EraseRequest {
    /// The job's key.
    pub job_id: String,
    /// Only of this kind; of all by default.
    pub kind: Option<String>,
}

impl EraseRequest {
    /// Everything of a job, of whatever kind.
    pub fn job(job_id: impl Into<String>) -> Self {
        Self { job_id: job_id.into(), kind: None }
    }

    /// Only of this kind.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Whether a job of a kind is meant.
    pub fn means(&self, kind: &str, job_id: &str) -> bool {
        self.job_id == job_id && self.kind.as_ref().is_none_or(|meant| meant == kind)
    }

    /// What the audit has in the job's place: a hash, from which nobody learns the key who does not know it already.
    pub fn hash(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        for byte in crate::dead_letter::sha256::sha256(self.job_id.as_bytes()) {
            // Writing to a text does not fail.
            let _written = write!(text, "{byte:02x}");
        }
        text
    }
}

/// What was erased, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EraseReport {
    /// Letters, in whatever state.
    pub letters: u64,
    /// Their payloads.
    pub revisions: u64,
    /// Their history.
    pub attempts: u64,
    /// What the audit said of them.
    pub events: u64,
    /// Entries of the attempt ledger with this key.
    pub ledger_entries: u64,
    /// Journal entries of this job.
    pub journal_entries: u64,
    /// Files of large payloads.
    pub payload_files: u64,
    /// Lines of spill files, those taken in already included.
    pub spill_lines: u64,
    /// Where something of this job may still be, and what to do about it; empty where nothing is left.
    pub left: Vec<String>,
}
