//! How a store is, in numbers: for metrics and health endpoints.

use std::sync::PoisonError;
use std::time::SystemTime;

use retry_runtime::dead_letter::lost;
use retry_runtime::error::StoreError;

use super::disk;
use crate::open::files::{beside, directory_of, set_aside_files};
use crate::store::SqliteStore;
use crate::worker::Shared;
use crate::worker::batch::again;

/// How the last emptying of the write-ahead log went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// When it was tried.
    pub at: SystemTime,
    /// Everything in the log is in the file, and the log begins anew.
    pub emptied: bool,
    /// What the log held, in pages.
    pub log_pages: u64,
    /// How many of them are in the file.
    pub moved_pages: u64,
}

/// Numbers of a moment; [`Doctor`](retry_runtime::dead_letter::Doctor) says what they mean. Always all of them, also those
/// that are 0: a missing number is no alarm, and no all-clear.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Health {
    /// The database file.
    pub database_bytes: u64,
    /// Its write-ahead log, which keeps its size when it is emptied.
    pub log_bytes: u64,
    /// What is free on the database's disk for this user; `None` where the system does not tell.
    pub free_bytes: Option<u64>,
    /// How the log was last emptied by this store; `None` while it never was.
    pub last_checkpoint: Option<Checkpoint>,
    /// Since when the log could not be emptied although it is above [`AlarmAt::log_bytes`](crate::AlarmAt::log_bytes).
    pub log_stuck_since: Option<SystemTime>,
    /// Letters that are owed in the store's scope - parked, replaying, abandoned - as this store's writer last counted them:
    /// every ten seconds while the store works. `None` until it did, and in a store that only reads.
    pub owed_letters: Option<u64>,
    /// Spilled letters that wait; `None` where the spill cannot be read.
    pub spilled: Option<u64>,
    /// Files that were set aside as corrupt and wait to be salvaged.
    pub set_aside: u64,
    /// Changes that wait to be written.
    pub waiting: u64,
    /// How many changes ever came while more than 10,000 waited.
    pub overflowed: u64,
    /// Since when letters go to the spill file because the store fails.
    pub down_since: Option<SystemTime>,
    /// Why.
    pub down_because: Option<StoreError>,
    /// Letters this process has lost.
    pub lost: u64,
}

/// What the writer tells.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) down: Option<(SystemTime, StoreError)>,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) log_stuck_since: Option<SystemTime>,
    pub(crate) owed: Option<u64>,
}

impl Shared {
    pub(crate) fn tell<T>(&self, change: impl FnOnce(&mut Told) -> T) -> T {
        change(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl SqliteStore {
    /// How the store is, in numbers. Looks at files, asks neither the writer nor the database: also while both are busy.
    pub fn health(&self) -> Health {
        let (path, shared) = (self.path(), &self.handle().shared);
        let (waiting, overflowed) = self.backlog();
        let mut health = Health {
            database_bytes: disk::size(path),
            log_bytes: disk::size(&beside(path, "-wal")),
            free_bytes: disk::free(directory_of(path)),
            spilled: shared.spill.waiting().ok(),
            set_aside: set_aside_files(path).len() as u64,
            waiting: waiting as u64,
            overflowed,
            lost: lost(),
            ..Health::default()
        };
        shared.tell(|told| {
            health.last_checkpoint = told.checkpoint;
            health.log_stuck_since = told.log_stuck_since;
            health.owed_letters = told.owed;
            health.down_since = told.down.as_ref().map(|(since, _)| *since);
            health.down_because = told.down.as_ref().map(|(_, because)| again(because));
        });
        health
    }
}
