//! Dead letters, attempt ledger and daily counters in one SQLite file.

mod claim;
mod config;
mod counters;
mod error;
mod filter;
mod ledger;
mod letters;
mod open;
mod park;
#[cfg(test)]
mod plans;
mod reader;
mod rows;
mod store;
mod worker;

pub use config::{Durability, SqliteOptions};
pub use error::OpenError;
pub use store::SqliteStore;
