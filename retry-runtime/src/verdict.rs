//! What a classifier says about one failure.

use std::fmt;
use std::time::Duration;

/// What should happen after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// May pass when tried again.
    Retryable,
    /// Will fail again; trying again is a waste.
    Permanent,
    /// A final answer (404, 410 for a fetcher): no retry, no fallback, no dead letter.
    Gone,
    /// Nobody knows; the `unknown` option decides.
    Unknown,
}

impl Disposition {
    /// Every disposition.
    pub const ALL: &'static [Self] = &[Self::Retryable, Self::Permanent, Self::Gone, Self::Unknown];

    /// The stable text form: `retryable`, `permanent`, `gone` or `unknown`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retryable => "retryable",
            Self::Permanent => "permanent",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
        }
    }

    /// The disposition of a stable text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|disposition| disposition.as_str() == text)
    }
}

impl fmt::Display for Disposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A classifier's full answer about one failure.
///
/// ```
/// use retry_runtime::Verdict;
/// const SLOW: Verdict = Verdict::retryable("timeout").code(504);
/// assert_eq!(SLOW.class, "timeout");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// What should happen.
    pub disposition: Disposition,
    /// The failure class, `snake_case`. A static name, so that metric labels stay bounded.
    pub class: &'static str,
    /// A status or error code, where the failure carries one.
    pub code: Option<i64>,
    /// How long the server asked to wait.
    pub retry_after: Option<Duration>,
    /// The work may have been done all the same (sent, then timed out or reset).
    pub outcome_unknown: bool,
}

impl Verdict {
    /// A verdict of any disposition, with a class and nothing else.
    pub const fn new(disposition: Disposition, class: &'static str) -> Self {
        Self { disposition, class, code: None, retry_after: None, outcome_unknown: false }
    }

    /// Whether it may pass, and nothing is asked for.
    #[inline]
    pub(crate) const fn only_may_pass(&self) -> bool {
        matches!((self.disposition, self.retry_after), (Disposition::Retryable, None))
    }

    /// May pass when tried again.
    pub const fn retryable(class: &'static str) -> Self {
        Self::new(Disposition::Retryable, class)
    }

    /// Will fail again.
    pub const fn permanent(class: &'static str) -> Self {
        Self::new(Disposition::Permanent, class)
    }

    /// A final answer: there is nothing to fetch or do.
    pub const fn gone(class: &'static str) -> Self {
        Self::new(Disposition::Gone, class)
    }

    /// Nobody knows.
    pub const fn unknown(class: &'static str) -> Self {
        Self::new(Disposition::Unknown, class)
    }

    /// Adds a status or error code.
    #[must_use]
    pub const fn code(mut self, code: i64) -> Self {
        self.code = Some(code);
        self
    }

    /// Adds the wait that the server asked for.
    #[must_use]
    pub const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Marks that the work may have been done all the same.
    #[must_use]
    pub const fn outcome_unknown(mut self) -> Self {
        self.outcome_unknown = true;
        self
    }
}
