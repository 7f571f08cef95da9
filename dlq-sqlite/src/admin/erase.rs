//! Erasing everything of one job, so that no byte of it is left in the files.
//!
//! Connections that write zero what they delete (`secure_delete`), and the log, which still has the pages as they were, is
//! emptied afterwards.

use retry_runtime::dead_letter::{Actor, EraseReport, EraseRequest};
use rusqlite::{Connection, params};

use crate::rows::{self, Tx};

/// Erases what is in the database. Returns the payload files that were named.
pub(crate) fn erase(
    tx: Tx<'_>,
    request: &EraseRequest,
    actor: &Actor,
    report: &mut EraseReport,
) -> rusqlite::Result<Vec<String>> {
    let c = tx.connection;
    let (job, kind) = (request.job_id.as_str(), request.kind.as_deref());
    let seqs = c
        .prepare("SELECT seq FROM letter WHERE scope = ?1 AND job_id = ?2 AND (?3 IS NULL OR kind = ?3)")?
        .query_map(params![tx.scope, job, kind], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<i64>>>()?;
    let mut files = Vec::new();
    for seq in seqs {
        files.extend(names(c, "SELECT blob FROM payload WHERE seq = ?1 AND blob IS NOT NULL", params![seq])?);
        report.letters += 1;
        report.revisions += changed(c, "DELETE FROM payload WHERE seq = ?1", params![seq])?;
        report.attempts += changed(c, "DELETE FROM attempt WHERE seq = ?1", params![seq])?;
        report.events += changed(c, "DELETE FROM event WHERE seq = ?1", params![seq])?;
        changed(c, "DELETE FROM letter WHERE seq = ?1", params![seq])?;
    }
    let of_job = "scope = ?1 AND job_id = ?2 AND (?3 IS NULL OR kind = ?3)";
    let named = format!("SELECT blob FROM journal WHERE blob IS NOT NULL AND {of_job}");
    files.extend(names(c, &named, params![tx.scope, job, kind])?);
    report.journal_entries += changed(c, &format!("DELETE FROM journal WHERE {of_job}"), params![tx.scope, job, kind])?;
    // An entry's scope is the operation's name, by default.
    let ledger = "DELETE FROM ledger WHERE key = ?1 AND (?2 IS NULL OR scope = ?2)";
    report.ledger_entries += changed(c, ledger, params![job, kind])?;
    if !job.is_empty() {
        report.events += clean_events(c, request)?;
        for (table, key, columns) in TOLD {
            for column in *columns {
                clean(c, table, key, column, request)?;
            }
        }
        let operations = c
            .prepare("SELECT id, filter FROM op")?
            .query_map([], |row| Ok((row.get::<_, String>(0)?, rows::text(row, 1)?)))?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        let naming = operations.into_iter().filter(|(_, filter)| request.is_in_filter(filter));
        report.left.extend(naming.map(|(id, _)| request.left_in_operation(&id)));
    }
    let detail = format!("a job with SHA-256 {}: {} letters", request.hash(), report.letters);
    rows::event(tx, None, "erased", Some(actor), (None, None), &detail)?;
    Ok(files)
}

/// Where people, and this library, may have written a job's key: table, its key, columns.
const TOLD: &[(&str, &str, &[&str])] = &[
    ("event", "id", &["actor", "reason", "detail"]),
    ("op", "id", &["actor", "reason", "note", "runner"]),
    ("op_item", "op_id || ' ' || seq", &["detail"]),
    ("group_note", "id", &["note", "actor"]),
];

/// Removes what happened to the store and names the job.
fn clean_events(c: &Connection, request: &EraseRequest) -> rusqlite::Result<u64> {
    let texts = "coalesce(actor, '') || char(10) || coalesce(reason, '') || char(10) || coalesce(detail, '')";
    let told = c
        .prepare(&format!("SELECT id, {texts} FROM event WHERE seq IS NULL AND instr({texts}, ?1) > 0"))?
        .query_map([&request.job_id], |row| Ok((row.get::<_, i64>(0)?, rows::text(row, 1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut removed = 0;
    for (id, _) in told.into_iter().filter(|(_, text)| request.is_named_in(text)) {
        removed += changed(c, "DELETE FROM event WHERE id = ?1", params![id])?;
    }
    Ok(removed)
}

/// Takes the key out of a column.
fn clean(c: &Connection, table: &str, key: &str, column: &str, request: &EraseRequest) -> rusqlite::Result<()> {
    let naming = c
        .prepare(&format!("SELECT {key}, {column} FROM {table} WHERE instr({column}, ?1) > 0"))?
        .query_map([&request.job_id], |row| Ok((row.get::<_, rusqlite::types::Value>(0)?, rows::text(row, 1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut update = c.prepare(&format!("UPDATE {table} SET {column} = ?2 WHERE {key} = ?1"))?;
    for (id, text) in naming {
        let mut clean = text.clone();
        request.remove_from(&mut clean);
        if clean != text {
            update.execute(params![id, clean])?;
        }
    }
    Ok(())
}

fn names(c: &Connection, sql: &str, of: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<Vec<String>> {
    c.prepare(sql)?.query_map(of, |row| row.get(0))?.collect()
}

fn changed(c: &Connection, sql: &str, of: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<u64> {
    Ok(c.prepare(sql)?.execute(of)? as u64)
}
