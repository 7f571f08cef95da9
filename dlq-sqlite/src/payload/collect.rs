//! Removing payload files that no row names any more.
//!
//! Nothing is judged by its age. A file is removed only
//!
//! - under the database's write lock, and when neither a payload nor a journal entry names it. Whoever writes a row that
//!   names a file looks, under the same lock, whether the file is there, and writes it again if it is not. So a parking under
//!   way in another process may lose its file before its transaction, and never after;
//! - after the change that freed it is on the disk: a loss of power must not bring a row back whose file is gone;
//! - while no file that was set aside as corrupt is there: its rows may name any of them;
//! - in a file of a schema this program knows whole: a later one may name files elsewhere.

use std::time::{Duration, Instant};

use retry_runtime::error::{StoreError, StoreErrorKind};
use rusqlite::Connection;

use super::blobs::Blobs;
use crate::error::from_sqlite;
use crate::failpoints;
use crate::open::{files, schema};
use crate::worker::batch;

/// So many files are removed under one lock.
const AT_ONCE: usize = 100;

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Collected {
    /// Files no row named.
    pub(crate) files: u64,
    /// Files a crash left half-written.
    pub(crate) unfinished: u64,
}

/// Whether a row names the file.
const IS_NAMED: &str =
    "SELECT EXISTS(SELECT 1 FROM payload WHERE blob = ?1) OR EXISTS(SELECT 1 FROM journal WHERE blob = ?1)";

/// Collects what nobody names. `path` is the database's own.
pub(crate) fn collect(
    connection: &Connection,
    blobs: &Blobs,
    path: &std::path::Path,
    patience: Duration,
) -> Result<Collected, StoreError> {
    let mut done = Collected::default();
    if !blobs.root().is_dir() || !files::set_aside_files(path).is_empty() {
        return Ok(done);
    }
    let failed = |error| from_sqlite("cannot collect payload files", error);
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    if version > schema::VERSION {
        return Ok(done);
    }
    let unreadable = |error: std::io::Error| {
        let message = format!("cannot collect payload files in `{}`", blobs.root().display());
        StoreError::new(StoreErrorKind::Unavailable, message).with_source(error)
    };
    done.unfinished = blobs.remove_unfinished().map_err(unreadable)?;
    let mut synced = false;
    for shard in 0..=u8::MAX {
        let mut unnamed = Vec::new();
        for name in blobs.names_in(shard).map_err(unreadable)? {
            if !is_named(connection, &name).map_err(failed)? {
                unnamed.push(name);
            }
        }
        if !unnamed.is_empty() && !std::mem::replace(&mut synced, true) && !sync_log(connection).map_err(failed)? {
            // Somebody else is moving the log; the next collection finds the same files.
            return Ok(done);
        }
        for some in unnamed.chunks(AT_ONCE) {
            let mut removed = 0;
            let mut outcome = batch::together(connection, Instant::now() + patience, 1, |_| {
                removed = 0;
                failpoints::hit("blob.before_removal")?;
                for name in some {
                    // One that cannot be removed stays for the next time.
                    if !is_named(connection, name)? && blobs.remove(name).is_ok() {
                        removed += 1;
                    }
                }
                Ok(())
            });
            done.files += removed;
            outcome.each.pop().unwrap_or(Ok(()))?;
        }
    }
    Ok(done)
}

pub(crate) fn is_named(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached(IS_NAMED)?.query_row([name], |row| row.get(0))
}

/// Brings every commit so far onto the disk, also where commits do not wait for that. `false`: another connection is at it.
fn sync_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(0)).map(|busy| busy == 0)
}
