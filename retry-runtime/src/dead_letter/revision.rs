//! The payloads a letter ever had.

use std::time::SystemTime;

use crate::dead_letter::sha256::sha256;
use crate::dead_letter::{Payload, whole_millis};

/// Where a revision of a payload comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RevisionSource {
    /// A call that parked its job.
    Park,
    /// An operator's edit.
    Edit,
    /// An import from another store.
    Import,
}

impl RevisionSource {
    /// The stable text form: `park`, `edit` or `import`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Park => "park",
            Self::Edit => "edit",
            Self::Import => "import",
        }
    }

    /// The source of a stable text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Park, Self::Edit, Self::Import].into_iter().find(|source| source.as_str() == text)
    }
}

/// One payload of a letter. Written once: an edit is a revision of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Revision {
    /// Its number, from 1, in the order of writing. (Which one a replay uses is said by
    /// [`LetterRow::payload_revision`](crate::dead_letter::LetterRow::payload_revision): an older parking that was imported
    /// late is not the newest payload.)
    pub revision: u32,
    /// Where it comes from.
    pub source: RevisionSource,
    /// Who edited it; `None` for what no operator did.
    pub actor: Option<String>,
    /// Why they did.
    pub reason: Option<String>,
    /// The size of the JSON text in bytes, as it was handed over.
    pub size: u64,
    /// The checksum of that text.
    pub sha256: [u8; 32],
    /// When it was written.
    pub at: SystemTime,
    /// The payload itself.
    pub payload: Payload,
}

impl Revision {
    /// A revision without actor and reason, of a JSON text; for stores.
    pub fn new(revision: u32, source: RevisionSource, at: SystemTime, json: impl Into<String>) -> Self {
        let json = json.into();
        Self {
            revision,
            source,
            actor: None,
            reason: None,
            size: json.len() as u64,
            sha256: sha256(json.as_bytes()),
            at: whole_millis(at),
            payload: Payload::Json(json),
        }
    }
}
