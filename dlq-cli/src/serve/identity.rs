//! Who is there, and what they may do.

use std::sync::Arc;

use axum::http::request::Parts;

/// What somebody may do. Each role may do what the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Reads, and asks for payloads, which are shown without their secrets.
    Viewer,
    /// Replays, discards, restores, resolves, edits, notes, and steers operations.
    Operator,
    /// Also resets keys of the ledger, sets thresholds, takes a letter from a replay that runs, and forces.
    Admin,
}

impl Role {
    /// Every role, the least first.
    pub const ALL: &'static [Self] = &[Self::Viewer, Self::Operator, Self::Admin];

    /// The stable text form: `viewer`, `operator` or `admin`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role of a stable text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.as_str() == text)
    }
}

/// Somebody who was let in. The name is the actor of everything they do, in the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Their name.
    pub name: String,
    /// What they may do.
    pub role: Role,
}

impl Identity {
    /// Somebody with a role.
    pub fn new(name: impl Into<String>, role: Role) -> Self {
        Self { name: name.into(), role }
    }
}

/// Says who sends a request, from its headers and extensions; `None`: nobody who may come in.
pub(crate) type Identify = Arc<dyn Fn(&Parts) -> Option<Identity> + Send + Sync>;
