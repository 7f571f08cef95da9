//! Counters per operation and day.

use std::collections::BTreeMap;

use retry_runtime::counters::{Day, MAX_COUNT};
use rusqlite::{Connection, params};

use crate::rows::{Tx, number, stored};

/// Adds to a counter of a day.
pub(crate) fn add(tx: Tx<'_>, day: Day, operation: &str, counter: &str, n: u64) -> rusqlite::Result<()> {
    tx.connection
        .prepare_cached(
            // Never adds what is not free up to the limit: the sum cannot overflow.
            "INSERT INTO daily(day, operation, counter, value) VALUES(?1, ?2, ?3, ?4)
             ON CONFLICT(day, operation, counter) DO UPDATE SET value = value + min(excluded.value, ?5 - value)",
        )?
        .execute(params![day.to_string(), operation, counter, stored(n.min(MAX_COUNT)), stored(MAX_COUNT)])?;
    Ok(())
}

/// An operation's counters of one day.
pub(crate) fn day(connection: &Connection, operation: &str, day: Day) -> rusqlite::Result<BTreeMap<String, u64>> {
    connection
        .prepare_cached("SELECT counter, value FROM daily WHERE day = ?1 AND operation = ?2")?
        .query_map(params![day.to_string(), operation], |row| Ok((row.get(0)?, number(row.get(1)?))))?
        .collect()
}

/// One counter, day by day.
pub(crate) fn series(
    connection: &Connection,
    operation: &str,
    counter: &str,
    from: Day,
    to: Day,
) -> rusqlite::Result<Vec<(Day, u64)>> {
    let known: BTreeMap<String, u64> = connection
        .prepare_cached("SELECT day, value FROM daily WHERE day BETWEEN ?1 AND ?2 AND operation = ?3 AND counter = ?4")?
        .query_map(params![from.to_string(), to.to_string(), operation, counter], |row| {
            Ok((row.get(0)?, number(row.get(1)?)))
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(from.through(to).map(|day| (day, known.get(&day.to_string()).copied().unwrap_or(0))).collect())
}
