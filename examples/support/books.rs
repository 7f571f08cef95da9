//! The image archive's books: ledger, dead letters and daily counters. They are kept beside the work, never in its way,
//! and a failure to keep them is said, never raised.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dlq_sqlite::SqliteStore;
use retry_runtime::counters::DailyCounters;
use retry_runtime::dead_letter::{DeadLetterSink, MemoryStore};
use retry_runtime::error::StoreError;
use retry_runtime::ledger::AttemptLedger;
use retry_runtime::reply::Reply;

/// Everything the archive writes down.
pub trait Store: DeadLetterSink + AttemptLedger + DailyCounters {}

impl<S: DeadLetterSink + AttemptLedger + DailyCounters> Store for S {}

/// The books of one operation.
pub struct Books {
    store: Arc<dyn Store>,
    operation: &'static str,
    unconfirmed: Mutex<Vec<Reply<Result<(), StoreError>>>>,
    bytes: AtomicU64,
}

impl Books {
    /// Opens them; if that fails, says so and keeps them in memory for as long as the program runs.
    pub fn open(path: &Path, operation: &'static str) -> Self {
        let store: Arc<dyn Store> = match SqliteStore::open(path) {
            Ok(store) => Arc::new(store),
            Err(error) => {
                eprintln!("{operation}: {}: {error}; nothing of this run will be remembered", path.display());
                Arc::new(MemoryStore::new())
            }
        };
        Self { store, operation, unconfirmed: Mutex::default(), bytes: AtomicU64::new(0) }
    }

    /// Where letters and attempts are kept.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Adds to one of today's counters, without waiting for the store.
    pub fn count(&self, counter: &str, n: u64) {
        let reply = self.store.add(self.operation, counter, n);
        self.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner).push(reply);
    }

    /// Counts bytes in `counter`, and in memory, for the case that the store forgets.
    pub fn count_bytes(&self, counter: &str, n: u64) {
        self.bytes.fetch_add(n, Ordering::Relaxed);
        self.count(counter, n);
    }

    /// Waits for what is still being counted, and says what was not.
    pub async fn settle(&self) {
        // Now rather than within a second: the program is about to end.
        drop(self.store.flush());
        let replies = std::mem::take(&mut *self.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner));
        let mut failures = Vec::new();
        for reply in replies {
            failures.extend(reply.await.err());
        }
        if let Some(first) = failures.first() {
            eprintln!("{}: {} counts were not written: {first}", self.operation, failures.len());
        }
    }

    /// Today's bytes of `counter`, earlier runs included where the store can tell.
    pub async fn bytes_today(&self, counter: &str) -> u64 {
        let here = self.bytes.load(Ordering::Relaxed);
        match self.store.day(self.operation.to_owned(), self.store.today()).await {
            Ok(day) => day.get(counter).copied().unwrap_or(0).max(here),
            Err(error) => {
                eprintln!("{}: today's counters cannot be read: {error}", self.operation);
                here
            }
        }
    }
}
