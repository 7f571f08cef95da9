//! Counters per operation and day.

use std::collections::BTreeMap;

use retry_runtime::counters::{Day, MAX_COUNT, Threshold};
use retry_runtime::dead_letter::{Actor, from_millis, to_millis};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::open::schema;
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

/// The operations and counters that were counted from one day to another, in order.
pub(crate) fn names(connection: &Connection, from: Day, to: Day) -> rusqlite::Result<Vec<(String, String)>> {
    connection
        .prepare_cached("SELECT DISTINCT operation, counter FROM daily WHERE day BETWEEN ?1 AND ?2 ORDER BY 1, 2")?
        .query_map(params![from.to_string(), to.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

const THRESHOLD: &str = "operation, counter, above, actor, at";

fn threshold(row: &Row<'_>) -> rusqlite::Result<Threshold> {
    let (operation, counter): (String, String) = (row.get(0)?, row.get(1)?);
    let actor = Actor::new(row.get::<_, String>(3)?, "");
    Threshold::new(operation, counter, number(row.get(2)?), &actor, from_millis(row.get(4)?))
        .map_err(|invalid| rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Integer, invalid.into()))
}

/// All thresholds, by operation and counter.
pub(crate) fn thresholds(connection: &Connection) -> rusqlite::Result<Vec<Threshold>> {
    if !schema::has(connection, "threshold")? {
        return Ok(Vec::new());
    }
    connection
        .prepare_cached(&format!("SELECT {THRESHOLD} FROM threshold ORDER BY operation, counter"))?
        .query_map([], threshold)?
        .collect()
}

pub(crate) fn set_threshold(tx: Tx<'_>, threshold: &Threshold) -> rusqlite::Result<()> {
    tx.connection
        .prepare_cached(
            "INSERT INTO threshold(operation, counter, above, actor, at) VALUES(?1, ?2, ?3, ?4, ?5)
             ON CONFLICT(operation, counter) DO UPDATE SET above = excluded.above, actor = excluded.actor, at = excluded.at",
        )?
        .execute(params![
            threshold.operation,
            threshold.counter,
            stored(threshold.above),
            threshold.set_by,
            to_millis(threshold.set_at)
        ])?;
    Ok(())
}

/// Takes a threshold away; gives what it was.
pub(crate) fn remove_threshold(tx: Tx<'_>, operation: &str, counter: &str) -> rusqlite::Result<Option<Threshold>> {
    tx.connection
        .prepare_cached(&format!("DELETE FROM threshold WHERE operation = ?1 AND counter = ?2 RETURNING {THRESHOLD}"))?
        .query_row(params![operation, counter], threshold)
        .optional()
}
