//! What is done to a whole store: retention, backup, export and import.

pub(crate) mod backup;
pub(crate) mod portable;
pub(crate) mod prune;
