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
        // What happened to the store, and says the key.
        let told = "DELETE FROM event WHERE seq IS NULL AND instr(coalesce(detail, ''), ?1) > 0";
        report.events += changed(c, told, params![job])?;
        let operations = names(c, "SELECT id FROM op WHERE instr(filter, ?1) > 0", params![job])?;
        report.left.extend(operations.into_iter().map(|id| {
            format!("bulk operation {id} names the job in its filter; it is needed to say what the operation did")
        }));
    }
    let detail = format!("a job with SHA-256 {}: {} letters", request.hash(), report.letters);
    rows::event(tx, None, "erased", Some(actor), (None, None), &detail)?;
    Ok(files)
}

fn names(c: &Connection, sql: &str, of: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<Vec<String>> {
    c.prepare(sql)?.query_map(of, |row| row.get(0))?.collect()
}

fn changed(c: &Connection, sql: &str, of: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<u64> {
    Ok(c.prepare(sql)?.execute(of)? as u64)
}
