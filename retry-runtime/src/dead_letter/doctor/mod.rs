//! What is wrong with a store, or soon will be, and what to do about it.

mod facts;

use std::fmt;
use std::sync::Arc;

use crate::dead_letter::BoxFuture;
use crate::error::StoreError;

pub use facts::{Counted, LetterFacts};

/// How much an examination may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Depth {
    /// Milliseconds, on a file of any size: what would take longer is left out, and said.
    #[default]
    Quick,
    /// Everything, however long it takes. Others can go on working meanwhile.
    Full,
}

/// How bad a [`Finding`] is. The larger, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing; nothing has to be done.
    Info,
    /// To be looked at.
    Warning,
    /// Something is lost, or letters have nowhere to go.
    Error,
}

impl Severity {
    /// The stable text form: `info`, `warning` or `error`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One thing an examination found. Prints as two lines: what it is, and what to do.
///
/// ```
/// use retry_runtime::dead_letter::{Finding, Severity};
///
/// let finding = Finding::new(Severity::Warning, "abandoned", "3 letters were given up").about("fetch").advise("restore");
/// assert_eq!(finding.to_string(), "warning  abandoned [fetch]: 3 letters were given up\n         -> restore");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is, in one stable word for scripts.
    pub code: &'static str,
    /// What it is about: a file, a kind, a scope; empty where it is about the whole store.
    pub subject: String,
    /// A sentence for people. Never a payload.
    pub message: String,
    /// What to do; empty where nothing has to be done.
    pub advice: String,
}

impl Finding {
    /// A finding about the whole store, with nothing to do.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Self { severity, code, subject: String::new(), message: message.into(), advice: String::new() }
    }

    /// What it is about.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// What to do.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    /// The order of a report: the worst first, then by code and subject.
    pub fn sort(findings: &mut [Self]) {
        findings.sort_by(|a, b| {
            b.severity.cmp(&a.severity).then_with(|| a.code.cmp(b.code)).then_with(|| a.subject.cmp(&b.subject))
        });
    }

    /// How bad the worst of them is, for an exit code or a health endpoint; `None` where nothing was found.
    pub fn worst(findings: &[Self]) -> Option<Severity> {
        findings.iter().map(|finding| finding.severity).max()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<7}  {}", self.severity, self.code)?;
        if !self.subject.is_empty() {
            write!(f, " [{}]", self.subject)?;
        }
        write!(f, ": {}", self.message)?;
        if !self.advice.is_empty() {
            write!(f, "\n         -> {}", self.advice)?;
        }
        Ok(())
    }
}

/// What to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkup {
    /// How much it may cost.
    pub depth: Depth,
    /// The kinds somebody has handlers for: parked letters of other kinds are `blocked`. `None`: not known, and a store
    /// goes by the kinds that were claimed from it.
    pub handled_kinds: Option<Vec<String>>,
}

impl Checkup {
    /// A quick one.
    pub fn quick() -> Self {
        Self::default()
    }

    /// A full one.
    pub fn full() -> Self {
        Self { depth: Depth::Full, handled_kinds: None }
    }

    /// The kinds somebody has handlers for.
    #[must_use]
    pub fn handling(mut self, kinds: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.handled_kinds = Some(kinds.into_iter().map(Into::into).collect());
        self
    }
}

impl From<Depth> for Checkup {
    fn from(depth: Depth) -> Self {
        Self { depth, handled_kinds: None }
    }
}

/// A store that can be asked how it is.
///
/// An examination changes nothing: no letter is added, moved or removed by it, and what it tries it undoes. It reports also
/// on a store that fails: then that is what it finds.
///
/// ```
/// use retry_runtime::dead_letter::{Checkup, Doctor, Finding, MemoryStore, Severity};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), retry_runtime::error::StoreError> {
/// let store = MemoryStore::new();
/// let findings = store.doctor(Checkup::quick()).await?;
/// // For a scheduled check: everything worse than a word to the wise fails it.
/// assert!(Finding::worst(&findings) <= Some(Severity::Info));
/// # Ok(())
/// # }
/// ```
pub trait Doctor: Send + Sync {
    /// What is wrong, the worst first. Nothing found is an empty list.
    ///
    /// # Errors
    /// `Closed` for a store that was closed. What else fails is a finding.
    fn doctor(&self, checkup: Checkup) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>>;
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<S: Doctor + ?Sized> Doctor for $type {
            fn doctor(&self, checkup: Checkup) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
                (**self).doctor(checkup)
            }
        }
    )*};
}

through!(&S, Arc<S>, Box<S>);

// The trait stays object-safe.
const _: fn(&dyn Doctor) = |_| {};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_and_is_told() {
        let mut findings = vec![
            Finding::new(Severity::Info, "b", ""),
            Finding::new(Severity::Error, "z", "").about("2"),
            Finding::new(Severity::Warning, "a", ""),
            Finding::new(Severity::Error, "z", "").about("1"),
        ];
        Finding::sort(&mut findings);
        let order: Vec<_> = findings.iter().map(|found| (found.code, found.subject.as_str())).collect();
        assert_eq!(order, [("z", "1"), ("z", "2"), ("a", ""), ("b", "")]);
        assert_eq!(Finding::worst(&findings), Some(Severity::Error));
        assert_eq!(Finding::worst(&[]), None);
    }
}
