//! Erasing everything of one job, where a law or a person demands it.

/// What stands where a text named a job that was erased.
pub const ERASED: &str = "[erased]";

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

    /// Whether a text names the job: its key stands there, not as a part of a longer word.
    pub fn is_named_in(&self, text: &str) -> bool {
        self.places(text).next().is_some()
    }

    /// Puts [`ERASED`] in the place of the key, wherever a text names the job.
    pub fn remove_from(&self, text: &mut String) {
        let mut clean = String::new();
        let mut copied = 0;
        for at in self.places(text) {
            clean.push_str(text.get(copied..at).unwrap_or_default());
            clean.push_str(ERASED);
            copied = at + self.job_id.len();
        }
        if copied > 0 {
            clean.push_str(text.get(copied..).unwrap_or_default());
            *text = clean;
        }
    }

    fn places<'a>(&'a self, text: &'a str) -> impl Iterator<Item = usize> {
        let joins = |inner: Option<char>, outer: Option<char>| {
            inner.is_some_and(char::is_alphanumeric) && outer.is_some_and(char::is_alphanumeric)
        };
        let key = self.job_id.as_str();
        let found = (!key.is_empty()).then(|| text.match_indices(key)).into_iter().flatten();
        found.map(|(at, _)| at).filter(move |at| {
            let before = text.get(..*at).and_then(|before| before.chars().next_back());
            let behind = text.get(at + key.len()..).and_then(|behind| behind.chars().next());
            !joins(key.chars().next(), before) && !joins(key.chars().next_back(), behind)
        })
    }

    /// Whether a [filter](crate::dead_letter::Filter::to_json) names the job.
    pub fn is_in_filter(&self, json: &str) -> bool {
        !self.job_id.is_empty() && json.contains(&serde_json::Value::from(self.job_id.as_str()).to_string())
    }

    /// What is told of a bulk operation whose filter names the job.
    pub fn left_in_operation(&self, op_id: &str) -> String {
        format!("bulk operation {op_id} names the job in its filter; it is needed to say what the operation did")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_as_a_whole_word() {
        let request = EraseRequest::job("cust-4711");
        for named in ["cust-4711", "ticket 9: cust-4711 complains", "(cust-4711)", "cust-47111 cust-4711"] {
            assert!(request.is_named_in(named), "{named}");
        }
        for not in ["", "cust-471", "cust-47111", "xcust-4711"] {
            assert!(!request.is_named_in(not), "{not}");
        }
        assert!(!EraseRequest::job("").is_named_in("anything"));
        let mut text = "cust-4711, cust-47111, cust-4711".to_owned();
        request.remove_from(&mut text);
        assert_eq!(text, "[erased], cust-47111, [erased]");
        let odd = EraseRequest::job("say \"bob\" \\");
        assert!(odd.is_in_filter(r#"{"job_ids":["a","say \"bob\" \\"]}"#));
        assert!(!EraseRequest::job("a").is_in_filter(r#"{"job_ids":["ab"]}"#));
    }
}
