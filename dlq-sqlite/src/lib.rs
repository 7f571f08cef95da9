//! Dead letters, attempt ledger and daily counters in one SQLite file.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use dlq_sqlite::SqliteStore;
//! use retry_runtime::StopReason;
//! use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink, DeadLetterStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("jobs.db");
//! let store = SqliteStore::open(path)?;
//! // Usually by `#[retry(dead_letter(sink = store, ..))]`.
//! let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now());
//! letter.job_id = Some("job-1".into());
//! letter.code = Some(429);
//! assert!(store.submit(letter).await.is_kept());
//!
//! let summary = store.summary().await?;
//! assert_eq!(summary.to_string(), "dead-letter: 1 parked\n     1  exhausted:429");
//! store.close(Duration::from_secs(10));
//! # Ok(())
//! # }
//! ```
//!
//! # What an answer means
//!
//! One thread writes, in one connection: what waits shares a transaction, and nobody is answered before its commit. With
//! [`Durability::Full`], the default, an answer means that the letter is on the disk.
//!
//! | | the process is killed | the power is lost |
//! |---|---|---|
//! | [`Durability::Full`] | nothing answered is lost | nothing answered is lost |
//! | [`Durability::Normal`] | nothing answered is lost | the last moments may be lost; the file stays whole |
//!
//! # When the file fails
//!
//! A full disk, a file that may only be read, damage, or a lock that another program holds for 5 s: letters then go to a
//! spill file, and the store is tried again every 5 s. When it has worked for 10 s, and whenever a store is opened, spilled
//! letters are taken in. A letter that is in both places is one letter. Only when the spill fails too is a letter lost, and
//! that is counted (operation `dead_letter`, counter `lost`) and said on stderr.
//!
//! A corrupt file is set aside together with its log, as `<name>.corrupt-<time>`, and a fresh one takes its place; see
//! [`SqliteStore::set_aside_files`]. The summary says how many there are, until they are gone.
//!
//! # Large payloads
//!
//! A payload below 64 KiB stands in its row as it is. From there on it is compressed (Zstandard), and one that is still larger
//! than 1 MiB ([`SqliteOptions::payload_file_above`]) goes into a file in `<name>.blobs/`, named by its hash: on the disk before
//! the row that names it, shared by letters with the same payload, and removed once a day, in an idle moment, when no row names
//! it any more. While a file that was set aside is there, none is removed: its rows may name any of them. A payload whose file
//! is missing or damaged is said, and its letter is left alone by replays.
//!
//! # The files
//!
//! All are for their owner alone, and lie beside the database, `<name>`:
//!
//! | | |
//! |---|---|
//! | `<name>-wal`, `<name>-shm` | SQLite's log, with what the database does not have yet, and its index; gone after a clean end |
//! | `<name>.lock` | by which processes know of each other; empty |
//! | `<name>.reserve` | 4 MiB given free when the disk is full |
//! | `<name>.blobs/` | payloads too large for a row, each named by its hash |
//! | `<name>.spill.*.ndjson` | letters that wait to be taken in (or in another of the [spill directories](SqliteOptions::spill_dirs)) |
//! | `<name>.spill.*.ndjson.done` | one whose letters were taken in |
//! | `<name>.spill.*.ndjson.bad` | lines of one that could not be read, for somebody to look at |
//! | `<name>.corrupt-*` | a corrupt file that was set aside, with its `-wal` and `-shm`: they belong together |
//!
//! The database must lie on a local disk. Symbolic links to it are followed; hard links are two names for which SQLite keeps
//! two logs, and must not be made.
//!
//! [`SqliteStore::backup`] copies a store, also one in use. When the last program has closed it, everything is in the
//! database file and `.blobs/` alone: they can be copied like any files.
//!
//! # Processes
//!
//! Any number of processes, and of stores in one process, may have one file open; also programs of another version of this
//! library. A store does not survive a `fork`: its threads stay behind in the parent, and a connection that two processes
//! use corrupts the file. Open it after the fork, in the child. Nor may one process open the file by two copies of SQLite
//! (this library's and another one's, linked by itself): the locks of one are dropped when the other closes the file.
//!
//! Daily counts are kept in memory for a second ([`SqliteOptions::flush_counters_every`]): a process that is killed loses
//! at most what it counted since. Letters and the ledger are never kept so.
//!
//! Other programs read the file by its views `dead_letter`, `attempt_ledger` and `daily_stats`, which stay as they are
//! when the tables behind them change.

mod admin;
mod claim;
mod config;
mod counters;
mod doctor;
mod due;
mod error;
mod events;
#[cfg(feature = "failpoints")]
pub mod failpoints;
#[cfg(not(feature = "failpoints"))]
#[path = "no_failpoints.rs"]
mod failpoints;
mod field;
mod filter;
mod grouping;
mod groups;
mod hand;
mod history;
mod journal;
mod ledger;
mod letters;
mod open;
mod operations;
mod overview;
mod park;
mod payload;
#[cfg(test)]
mod plans;
mod reader;
mod rows;
mod store;
mod walk;
mod worker;

pub use admin::backup::Backup;
pub use admin::salvage::{BooksTaken, Salvaged};
pub use config::{Durability, SqliteOptions};
pub use error::OpenError;
pub use field::alarm::AlarmAt;
pub use field::health::{Checkpoint, Health};
pub use store::SqliteStore;
