//! What is done to a whole store: retention, backup, erasure, export and import.

pub(crate) mod backup;
pub(crate) mod erase;
pub(crate) mod portable;
pub(crate) mod prune;
pub(crate) mod salvage;
