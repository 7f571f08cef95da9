//! What a store can say no with.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The kinds of store failure. They decide what happens next: `Busy` and `Unavailable` are worth another try, the
/// others go to the spill at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Another writer holds the store.
    Busy,
    /// The store cannot be reached.
    Unavailable,
    /// No space left.
    Full,
    /// The store may only be read.
    ReadOnly,
    /// The file is damaged, or no store.
    Corrupt,
    /// The request makes no sense: the message says what is accepted.
    Invalid,
    /// The lease has gone to somebody else.
    StaleLease,
    /// The request contradicts the present state.
    Conflict,
    /// The store was closed.
    Closed,
    /// Whether it was done is not known.
    Unknown,
}

/// An error of a store, with what was tried. Clones share the cause.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
    /// The loss it is the cause of was said aloud.
    said: bool,
}

impl StoreError {
    /// An error of a kind, with a message that names the place and what was tried.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None, said: false }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// What kind of failure it is.
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Marks it as the cause of a loss that was said aloud.
    pub(crate) fn said(mut self) -> Self {
        self.said = true;
        self
    }

    pub(crate) const fn is_said(&self) -> bool {
        self.said
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}
