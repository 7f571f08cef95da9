//! Settings of a connection, each read back: SQLite ignores what it does not know without a word.

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::config::Settings;
use crate::error::OpenError;
use crate::open::version::wal_is_safe;

/// Sets, then reads back.
fn set(
    connection: &Connection,
    settings: &Settings,
    name: &'static str,
    value: &str,
    kept: &str,
) -> Result<(), OpenError> {
    let path = &settings.path;
    // Some answer with a row, some do not: both are fine here.
    connection
        .execute_batch(&format!("PRAGMA {name} = {value}"))
        .map_err(OpenError::sqlite(&format!("set {name} of"), path))?;
    let found = connection
        .query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, Value>(0))
        .map_err(OpenError::sqlite(&format!("read {name} of"), path))?;
    let found = match found {
        Value::Integer(n) => n.to_string(),
        Value::Text(text) => text,
        other => format!("{other:?}"),
    };
    if found.eq_ignore_ascii_case(kept) {
        Ok(())
    } else {
        Err(OpenError::Pragma { path: path.clone(), name, wanted: value.to_owned(), found })
    }
}

/// What only a file without tables takes.
pub(crate) fn before_first_table(connection: &Connection, settings: &Settings) -> Result<(), OpenError> {
    // Without it pruning never gives space back.
    set(connection, settings, "auto_vacuum", "INCREMENTAL", "2")
}

/// The settings of the one connection that writes.
pub(crate) fn for_writing(connection: &Connection, settings: &Settings) -> Result<(), OpenError> {
    let busy = i64::try_from(settings.busy_timeout.as_millis()).unwrap_or(i64::MAX).to_string();
    set(connection, settings, "busy_timeout", &busy, &busy)?;
    if settings.network_file_system {
        set(connection, settings, "locking_mode", "EXCLUSIVE", "exclusive")?;
        set(connection, settings, "journal_mode", "DELETE", "delete")?;
    } else if wal_is_safe(rusqlite::version_number()) {
        set(connection, settings, "journal_mode", "WAL", "wal")?;
    } else {
        set(connection, settings, "journal_mode", "DELETE", "delete")?;
    }
    let (word, number) = settings.durability.pragma();
    set(connection, settings, "synchronous", word, &number.to_string())?;
    for (name, value, kept) in [
        ("foreign_keys", "ON", "1"),
        ("fullfsync", "ON", "1"),
        ("checkpoint_fullfsync", "ON", "1"),
        // Savepoints and sorts stay in memory: a full disk must not fail a rollback.
        ("temp_store", "MEMORY", "2"),
        ("cache_size", "-16384", "-16384"),
        ("wal_autocheckpoint", "4000", "4000"),
        ("journal_size_limit", "67108864", "67108864"),
        ("cell_size_check", "ON", "1"),
        ("trusted_schema", "OFF", "0"),
        // What is deleted is gone: payloads are other people's data. Deletions are rare.
        ("secure_delete", "ON", "1"),
    ] {
        set(connection, settings, name, value, kept)?;
    }
    Ok(())
}

/// The settings of a connection that must not write.
pub(crate) fn for_reading(connection: &Connection, settings: &Settings) -> Result<(), OpenError> {
    let busy = i64::try_from(settings.busy_limit.as_millis()).unwrap_or(i64::MAX).to_string();
    for (name, value, kept) in [
        ("busy_timeout", busy.as_str(), busy.as_str()),
        ("query_only", "ON", "1"),
        ("temp_store", "MEMORY", "2"),
        ("cache_size", "-16384", "-16384"),
        ("cell_size_check", "ON", "1"),
        ("trusted_schema", "OFF", "0"),
    ] {
        set(connection, settings, name, value, kept)?;
    }
    Ok(())
}
