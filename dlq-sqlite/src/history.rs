//! A letter's history: what every attempt came to, within bounds.

use std::time::Duration;

use retry_runtime::dead_letter::{
    AttemptOutcome, HistoryEntry, HistorySize, MAX_HISTORY_ENTRIES, from_millis, to_millis,
};
use retry_runtime::id::Id;
use rusqlite::{Connection, Row, params};

use crate::rows::{self, Tx, number, small, stored};

/// The columns [`entry`] reads, in its order.
const COLUMNS: &str = "park_id, fence, outcome, late, number, at, took_us, class, code, message, wait_ms";

/// A recorded attempt.
fn entry(row: &Row<'_>) -> rusqlite::Result<HistoryEntry> {
    let outcome = AttemptOutcome::parse(&rows::text(row, 2)?).unwrap_or(AttemptOutcome::Failed);
    let at = from_millis(row.get(5)?);
    let message = rows::text(row, 9)?;
    let mut out = HistoryEntry::bare(0, outcome, at, message);
    out.park_id = rows::some_text(row, 0)?.as_deref().and_then(Id::parse);
    out.fence = row.get::<_, Option<i64>>(1)?.map(number);
    out.late = row.get(3)?;
    out.attempt = row.get(4).map(small)?;
    out.took = Duration::from_micros(row.get(6).map(number)?);
    out.class = rows::some_text(row, 7)?;
    out.code = row.get(8)?;
    out.wait = row.get::<_, Option<i64>>(10)?.map(|ms| Duration::from_millis(number(ms)));
    Ok(out)
}

/// A letter's attempts, in the order of recording, and what was cut out of them.
pub(crate) fn of(connection: &Connection, seq: u64) -> rusqlite::Result<(Vec<HistoryEntry>, HistorySize)> {
    let entries = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM attempt WHERE seq = ?1 ORDER BY id"))?
        .query_map([stored(seq)], entry)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    if !rows::has(connection, "letter", "history_cut")? {
        return Ok((entries, HistorySize::default()));
    }
    let size = connection
        .prepare_cached(
            "SELECT history_entries, history_bytes, history_cut, history_cut_at FROM letter WHERE seq = ?1",
        )?
        .query_row([stored(seq)], size)?;
    Ok((entries, size))
}

fn size(row: &Row<'_>) -> rusqlite::Result<HistorySize> {
    let n = |at| row.get(at).map(number);
    Ok(HistorySize::new(n(0)?, n(1)?, n(2)?, n(3)?))
}

/// Adds to the history of a letter that is there.
pub(crate) fn add(tx: Tx<'_>, seq: u64, entries: &[HistoryEntry]) -> rusqlite::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    write(tx, seq, entries)?;
    let mut new = HistorySize::default();
    new.add(entries);
    let size = tx
        .connection
        .prepare_cached(
            "UPDATE letter SET history_entries = history_entries + ?2, history_bytes = history_bytes + ?3 WHERE seq = ?1
             RETURNING history_entries, history_bytes, history_cut, history_cut_at",
        )?
        .query_row(params![stored(seq), stored(new.entries), stored(new.bytes)], size)?;
    if size.is_over() { cut(tx, seq, size) } else { Ok(()) }
}

/// Writes the first history of a letter, whose row counts it already.
pub(crate) fn begin(tx: Tx<'_>, seq: u64, entries: &[HistoryEntry], size: HistorySize) -> rusqlite::Result<()> {
    write(tx, seq, entries)?;
    if size.is_over() { cut(tx, seq, size) } else { Ok(()) }
}

/// Takes out of the middle what is too much: seldom more than what was just added, found by one index.
fn cut(tx: Tx<'_>, seq: u64, mut size: HistorySize) -> rusqlite::Result<()> {
    if size.cut == 0 {
        let oldest = tx
            .connection
            .prepare_cached(OLDEST)?
            .query_map(params![stored(seq), stored(MAX_HISTORY_ENTRIES / 2)], |row| row.get(0).map(number))?
            .collect::<rusqlite::Result<Vec<u64>>>()?;
        size.settle(oldest);
    }
    while size.is_over() {
        let taken = tx
            .connection
            .prepare_cached(CUT)?
            .query_map(params![stored(seq), stored(size.excess()), stored(size.cut_at)], |row| row.get(0).map(number))?
            .collect::<rusqlite::Result<Vec<u64>>>()?;
        if taken.is_empty() {
            break;
        }
        for bytes in taken {
            size.took_out(bytes);
        }
    }
    tx.connection
        .prepare_cached(
            "UPDATE letter SET history_entries = ?2, history_bytes = ?3, history_cut = ?4, history_cut_at = ?5 WHERE seq = ?1",
        )?
        .execute(params![
            stored(seq),
            stored(size.entries),
            stored(size.bytes),
            stored(size.cut),
            stored(size.cut_at)
        ])?;
    Ok(())
}

pub(crate) const OLDEST: &str =
    "SELECT coalesce(length(CAST(message AS BLOB)), 0) FROM attempt WHERE seq = ?1 ORDER BY id LIMIT ?2";

pub(crate) const CUT: &str = "DELETE FROM attempt
     WHERE id IN (SELECT id FROM attempt WHERE seq = ?1 ORDER BY id LIMIT ?2 OFFSET ?3)
     RETURNING coalesce(length(CAST(message AS BLOB)), 0)";

fn write(tx: Tx<'_>, seq: u64, entries: &[HistoryEntry]) -> rusqlite::Result<()> {
    let mut statement = tx.connection.prepare_cached(
        "INSERT INTO attempt(seq, park_id, fence, outcome, late, number, at, took_us, class, code, message, wait_ms)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for entry in entries {
        statement.execute(params![
            stored(seq),
            entry.park_id.map(|id| id.to_string()),
            entry.fence.map(stored),
            entry.outcome.as_str(),
            entry.late,
            entry.attempt,
            to_millis(entry.at),
            i64::try_from(entry.took.as_micros()).unwrap_or(i64::MAX),
            entry.class,
            entry.code,
            entry.message,
            entry.wait.map(|wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        ])?;
    }
    Ok(())
}
