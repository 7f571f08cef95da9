//! Attempts per key that survive restarts (STORE D17).

use retry_runtime::dead_letter::{from_millis, to_millis};
use retry_runtime::ledger::{Begin, End, LedgerCounts, LedgerEntry, LedgerKey, LedgerQuery, LedgerStatus, LedgerToken};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::open::schema;
use crate::rows::{Tx, number, small, some_time, stored};

const COLUMNS: &str = "scope, key, status, attempts, next_at, first_seen, last_seen, generation";

fn entry(row: &Row<'_>) -> rusqlite::Result<LedgerEntry> {
    let key = LedgerKey::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?);
    let mut entry = LedgerEntry::new(key, from_millis(row.get(5)?));
    entry.status = LedgerStatus::parse(&row.get::<_, String>(2)?).unwrap_or(LedgerStatus::Open);
    entry.attempts = row.get(3).map(small)?;
    entry.next_at = some_time(row.get(4)?);
    entry.last_seen = from_millis(row.get(6)?);
    entry.generation = row.get(7).map(number)?;
    Ok(entry)
}

/// What is known of a key.
pub(crate) fn find(connection: &Connection, key: &LedgerKey) -> rusqlite::Result<Option<LedgerEntry>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM ledger WHERE scope = ?1 AND key = ?2"))?
        .query_row(params![key.scope, key.key], entry)
        .optional()
}

/// The keys of a scope in order, behind `after`.
pub(crate) fn page(
    connection: &Connection,
    scope: &str,
    after: Option<&str>,
    limit: u32,
) -> rusqlite::Result<Vec<LedgerEntry>> {
    // Every key is larger than no text at all, but the empty key is not larger than the empty text.
    let behind = if after.is_some() { "AND key > ?2" } else { "AND ?2 IS NULL" };
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM ledger WHERE scope = ?1 {behind} ORDER BY key LIMIT ?3"))?
        .query_map(params![scope, after, limit], entry)?
        .collect()
}

/// The keys a query means, behind its cursor, one more than it wants.
pub(crate) fn matching(connection: &Connection, query: &LedgerQuery) -> rusqlite::Result<Vec<LedgerEntry>> {
    let is_indexed = query.status.is_some() && schema::has(connection, STATUS_INDEX)?;
    connection
        .prepare_cached(&matching_sql(query, is_indexed))?
        .query_map(
            params![
                query.scope,
                query.after,
                query.attempts_at_least,
                i64::from(query.limit).saturating_add(1),
                query.status.map(LedgerStatus::as_str)
            ],
            entry,
        )?
        .collect()
}

/// Of schema 2: a file of schema 1 that is only read has none.
const STATUS_INDEX: &str = "ledger_status";

pub(crate) fn matching_sql(query: &LedgerQuery, is_indexed: bool) -> String {
    // The planner would walk the table's own key through all other statuses.
    let indexed = if is_indexed { format!("INDEXED BY {STATUS_INDEX}") } else { String::new() };
    // Every key is larger than no text at all, but the empty key is not larger than the empty text.
    let behind = if query.after.is_some() { "AND key > ?2" } else { "AND ?2 IS NULL" };
    let status = if query.status.is_some() { "AND status = ?5" } else { "AND ?5 IS NULL" };
    format!(
        "SELECT {COLUMNS} FROM ledger {indexed} WHERE scope = ?1 {status} {behind} AND attempts >= ?3 ORDER BY key LIMIT ?4"
    )
}

/// How many keys of a scope stand where.
pub(crate) fn counts(connection: &Connection, scope: &str) -> rusqlite::Result<LedgerCounts> {
    let mut counts = LedgerCounts::default();
    let mut statement = connection.prepare_cached(COUNTS)?;
    let mut rows = statement.query([scope])?;
    while let Some(row) = rows.next()? {
        let status = LedgerStatus::parse(&row.get::<_, String>(0)?).unwrap_or(LedgerStatus::Open);
        counts.add(status, number(row.get(1)?));
    }
    Ok(counts)
}

pub(crate) const COUNTS: &str = "SELECT status, count(*) FROM ledger WHERE scope = ?1 GROUP BY status";

/// The scopes that have keys: one step of the index for each, however many keys they have.
pub(crate) fn scopes(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached(
            "WITH RECURSIVE known(scope) AS (
               SELECT min(scope) FROM ledger
               UNION ALL SELECT (SELECT min(scope) FROM ledger WHERE scope > known.scope) FROM known WHERE scope IS NOT NULL
             ) SELECT scope FROM known WHERE scope IS NOT NULL",
        )?
        .query_map([], |row| row.get(0))?
        .collect()
}

fn save(tx: Tx<'_>, entry: &LedgerEntry) -> rusqlite::Result<()> {
    tx.connection
        .prepare_cached(
            "INSERT INTO ledger(scope, key, status, attempts, next_at, first_seen, last_seen, generation)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT(scope, key) DO UPDATE SET status = excluded.status, attempts = excluded.attempts,
               next_at = excluded.next_at, last_seen = excluded.last_seen, generation = excluded.generation",
        )?
        .execute(params![
            entry.key.scope,
            entry.key.key,
            entry.status.as_str(),
            entry.attempts,
            entry.next_at.map_or(0, to_millis),
            to_millis(entry.first_seen),
            to_millis(entry.last_seen),
            stored(entry.generation)
        ])?;
    Ok(())
}

/// Counts a call before it is made, or refuses it.
pub(crate) fn begin(tx: Tx<'_>, key: &LedgerKey, max_attempts: u32) -> rusqlite::Result<Begin> {
    let mut entry = find(tx.connection, key)?.unwrap_or_else(|| LedgerEntry::new(key.clone(), tx.now));
    let answer = entry.begin(max_attempts, tx.now);
    if matches!(answer, Begin::Go { .. }) {
        save(tx, &entry)?;
    }
    Ok(answer)
}

/// Writes down how a call ended. `false`: the key was closed already, or reset since.
pub(crate) fn end(tx: Tx<'_>, key: &LedgerKey, token: LedgerToken, end: End) -> rusqlite::Result<bool> {
    let Some(mut entry) = find(tx.connection, key)? else { return Ok(false) };
    let changed = entry.end(token, end, tx.now);
    if changed {
        save(tx, &entry)?;
    }
    Ok(changed)
}

/// Opens a key again, with no attempts and a new generation.
pub(crate) fn reset(tx: Tx<'_>, key: &LedgerKey) -> rusqlite::Result<Option<LedgerEntry>> {
    let Some(mut entry) = find(tx.connection, key)? else { return Ok(None) };
    entry.reset(tx.now);
    save(tx, &entry)?;
    Ok(Some(entry))
}
