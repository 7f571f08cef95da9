//! The schema's versions: what a file is, and how it is brought up to date.
//!
//! Two numbers, both in the file: the schema's version, and the oldest version whose programs can read it. A migration that
//! only adds (columns with defaults, tables, indexes) leaves the second one where it is: programs of older versions go on
//! reading and writing, and leave what was added at its defaults. What they do not know they neither change nor remove.
//!
//! The rule for a migration that does more - takes something away, or gives a column another meaning - of which there is
//! none yet: it raises [`MIN_READER`], so that older programs leave the file alone and spill; before its transaction is begun
//! and under the lock of openers held exclusively, the file is copied by `VACUUM INTO` to `<file>.before-<version>`, for its
//! owner alone, and synced; and where that copy cannot be made, the file is not migrated but opened for reading. Whoever
//! deletes the copy is the operator, never a program.

use retry_runtime::error::StoreErrorKind;
use rusqlite::{Connection, TransactionBehavior};

use crate::config::{Access, Settings};
use crate::error::OpenError;
use crate::failpoints;

/// "DLQ1" in a SQLite header.
pub(crate) const APPLICATION_ID: i64 = 0x444C_5131;

/// Every migration with the version it leads to, in order.
const MIGRATIONS: &[(i64, &str)] =
    &[(1, include_str!("../../migrations/0001_initial.sql")), (2, include_str!("../../migrations/0002_operators.sql"))];

/// The schema this program writes.
pub(crate) const VERSION: i64 = 2;

/// The oldest schema version whose programs can read what this one writes.
pub(crate) const MIN_READER: i64 = 1;

/// What a file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No table, no version: nobody's yet.
    New,
    /// A store of this or an older version.
    Ours(i64),
    /// A newer store that this program may use: it writes only the columns it knows.
    NewerReadable(i64),
}

/// Looks, and refuses what is not a store, or is one that cannot be read. One snapshot for everything looked at: another
/// process may be making this very store, and half of it would seem to be another program's.
pub(crate) fn look(connection: &Connection, settings: &Settings) -> Result<Found, OpenError> {
    let path = &settings.path;
    connection.execute_batch("BEGIN").map_err(OpenError::sqlite("read the header of", path))?;
    let found = look_at_snapshot(connection, settings);
    if !connection.is_autocommit() {
        let ended = connection.execute_batch("COMMIT").map_err(OpenError::sqlite("read the header of", path));
        // A damaged file fails here too, and less clearly.
        return found.and_then(|found| ended.map(|()| found));
    }
    found
}

fn look_at_snapshot(connection: &Connection, settings: &Settings) -> Result<Found, OpenError> {
    let path = &settings.path;
    let number = |sql: &str| {
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(OpenError::sqlite("read the header of", path))
    };
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let foreign = || OpenError::Foreign { path: path.clone(), found: application, expected: APPLICATION_ID };
    // By the header alone, as far as it says: another program's damaged file is not ours to set aside.
    if application != 0 && application != APPLICATION_ID {
        return Err(foreign());
    }
    let objects = match number("SELECT count(*) FROM sqlite_schema") {
        Err(error)
            if application == 0 && settings.access != Access::Create && error.kind() == StoreErrorKind::Corrupt =>
        {
            return Err(foreign());
        }
        other => other?,
    };
    if application == 0 && version == 0 && objects == 0 {
        return Ok(Found::New);
    }
    if application != APPLICATION_ID {
        return Err(foreign());
    }
    if version <= VERSION {
        return Ok(Found::Ours(version));
    }
    let min_reader = number("SELECT value FROM meta WHERE key = 'min_reader_version'")?;
    if min_reader <= VERSION {
        Ok(Found::NewerReadable(version))
    } else {
        Err(OpenError::TooNew { path: path.clone(), schema: version, min_reader, known: VERSION })
    }
}

/// Whether the file has a table or an index of that name. One of an older schema, opened for reading, is not migrated.
pub(crate) fn has(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS(SELECT 1 FROM sqlite_schema WHERE name = ?1)")?
        .query_row([name], |row| row.get(0))
}

/// Runs what is missing, each migration in one transaction with its version. The version is read again under the lock:
/// two processes that start together run each migration once.
pub(crate) fn migrate(connection: &mut Connection, settings: &Settings) -> Result<(), OpenError> {
    let path = &settings.path;
    for &(version, sql) in MIGRATIONS {
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(OpenError::sqlite("lock for migration", path))?;
        let step = || {
            let current: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if current >= version {
                return Ok(());
            }
            transaction.execute_batch(sql)?;
            failpoints::hit("migrate.between")?;
            transaction.execute(
                "INSERT INTO meta(key, value) VALUES('min_reader_version', ?1)
                 ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                [MIN_READER],
            )?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", version)?;
            failpoints::hit("migrate.before_commit")
        };
        step().map_err(OpenError::sqlite("migrate", path))?;
        let committed = transaction.commit().and_then(|()| failpoints::hit("migrate.after_commit"));
        committed.map_err(OpenError::sqlite("commit the migration of", path))?;
    }
    Ok(())
}
