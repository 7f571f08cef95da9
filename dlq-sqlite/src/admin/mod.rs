//! What is done to a whole store: retention, backup.

pub(crate) mod backup;
pub(crate) mod prune;
