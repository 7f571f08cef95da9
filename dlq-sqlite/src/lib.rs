//! Dead letters, attempt ledger and daily counters in one SQLite file.

// Used by the store, which follows.
#![allow(dead_code)]

mod config;
mod error;
mod open;

pub use config::Durability;
pub use error::OpenError;
