//! The file as a whole: what is due, who writes, what lies around it.

use std::path::Path;
use std::time::Duration;

use retry_runtime::dead_letter::{
    FileRole, LetterRow, ProcessFacts, Spill, StoreFacts, StoreFile, from_millis, to_millis,
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::field::disk;
use crate::open::files::{beside, directory_of, set_aside_files};
use crate::rows::{self, number, text};

/// The earliest hint ahead, of each kind by the index of claims.
pub(crate) const NEXT_DUE: &str = "SELECT min(due) FROM (
  SELECT (SELECT min(not_before) FROM letter INDEXED BY letter_claim
          WHERE scope = ?1 AND kind = k.kind AND state = 'parked' AND not_before > ?2) AS due
  FROM (SELECT DISTINCT kind FROM tally WHERE scope = ?1 AND state = 'parked' AND n > 0) k)";

/// Closed within a day.
pub(crate) const RECOVERED: &str =
    "SELECT count(*) FROM letter INDEXED BY letter_closed WHERE state = 'recovered' AND closed_at >= ?2 AND scope = ?1";

/// What the database tells.
pub(crate) fn facts(c: &Connection, scope: &str, facts: &mut StoreFacts) -> rusqlite::Result<()> {
    let now = to_millis(facts.now);
    let due: Option<i64> = c.prepare_cached(NEXT_DUE)?.query_row(params![scope, now], |row| row.get(0))?;
    facts.next_due = due.map(from_millis);
    let since = to_millis(facts.day_ago());
    facts.recovered_in_a_day =
        c.prepare_cached(RECOVERED)?.query_row(params![scope, since], |row| row.get(0).map(number))?;
    facts.processes = c
        .prepare_cached(
            "SELECT description, started_at, seen_at, lease_until FROM owner o
             WHERE EXISTS(SELECT 1 FROM journal j WHERE j.owner = o.id AND j.scope = ?1) ORDER BY started_at, id",
        )?
        .query_map([scope], |row| {
            let time = |at| row.get(at).map(from_millis);
            Ok(ProcessFacts::new(text(row, 0)?, time(1)?, time(2)?, time(3)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    facts.writers = c
        .prepare_cached(
            "SELECT p.writer, count(*) FROM (SELECT seq, writer FROM parking ORDER BY park_id DESC LIMIT ?2) p
             JOIN letter l ON l.seq = p.seq AND l.scope = ?1 GROUP BY p.writer ORDER BY count(*) DESC, p.writer",
        )?
        .query_map(params![scope, StoreFacts::NEWEST], |row| Ok((text(row, 0)?, row.get(1).map(number)?)))?
        .collect::<rusqlite::Result<_>>()?;
    // By their ids, which are made when they fail. Of those whose letter was pruned nobody knows the scope.
    facts.newest_parkings = c
        .prepare_cached(
            "SELECT p.failed_at FROM (SELECT park_id, seq, failed_at FROM parking ORDER BY park_id DESC LIMIT ?2) p
             LEFT JOIN letter l ON l.seq = p.seq WHERE coalesce(l.scope, ?1) = ?1 ORDER BY p.park_id DESC LIMIT ?3",
        )?
        .query_map(params![scope, StoreFacts::NEWEST, StoreFacts::NEWEST_TIMES], |row| row.get(0).map(from_millis))?
        .collect::<rusqlite::Result<_>>()?;
    let retention: Option<String> = c
        .prepare_cached("SELECT CAST(value AS TEXT) FROM meta WHERE key = ?1")?
        .query_row([format!("retention:{scope}")], |row| row.get(0))
        .optional()?;
    facts.discarded_kept = retention.as_deref().and_then(discarded_kept);
    Ok(())
}

/// What was announced of letters of no special kind: the first value of that name.
fn discarded_kept(announced: &str) -> Option<Duration> {
    let (_, rest) = announced.split_once("discarded: Some(")?;
    let (seconds, _) = rest.split_once("s)")?;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}

/// What the directories tell. A file that cannot be read is left out: the doctor says why.
pub(crate) fn files(path: &Path, spill: &Spill, facts: &mut StoreFacts) {
    let sized = |role, path: &Path| StoreFile::new(role, path, disk::size(path));
    facts.files.push(sized(FileRole::Database, path));
    let log = beside(path, "-wal");
    if log.exists() {
        facts.files.push(sized(FileRole::Log, &log));
    }
    let payloads = beside(path, ".blobs");
    if payloads.is_dir() {
        facts.files.push(StoreFile::new(FileRole::Payloads, &payloads, disk::size_below(&payloads)));
    }
    for file in spill.survey().unwrap_or_default() {
        facts.files.push(sized(FileRole::Spill, &file.path).with_lines(file.lines, file.held));
    }
    for bad in spill.bad_files().unwrap_or_default() {
        facts.files.push(sized(FileRole::SpillBad, &bad));
    }
    for aside in set_aside_files(path) {
        facts.files.push(sized(FileRole::SetAside, &aside));
    }
    facts.free_bytes = disk::free(directory_of(path));
}

/// What stands behind every text that begins so, and before every other: nothing is greater than that character.
const BEHIND_ALL: &str = "\u{10FFFF}";

/// The letters a text may mean.
pub(crate) fn find(c: &Connection, scope: &str, meant: &str, limit: u32) -> rusqlite::Result<Vec<LetterRow>> {
    if meant.is_empty() {
        return Ok(Vec::new());
    }
    let end = format!("{meant}{BEHIND_ALL}");
    let (id, job) = ("id = ?2 AND +scope = ?1", "scope = ?1 AND job_id = ?2");
    let (ids, jobs) = ("id >= ?2 AND id < ?3 AND +scope = ?1", "scope = ?1 AND job_id >= ?2 AND job_id < ?3");
    for condition in [
        id.to_owned(),
        job.to_owned(),
        format!("seq IN (SELECT seq FROM letter WHERE {ids} UNION SELECT seq FROM letter WHERE {jobs} LIMIT ?4)"),
    ] {
        let sql =
            format!("SELECT {} FROM letter WHERE {condition} AND ?3 IS NOT NULL ORDER BY seq LIMIT ?4", rows::LETTER);
        let found: Vec<LetterRow> = c
            .prepare_cached(&sql)?
            .query_map(params![scope, meant, end, limit], rows::letter)?
            .collect::<rusqlite::Result<_>>()?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use retry_runtime::dead_letter::{KindRetention, Retention};

    // S1: what the writer announces can be read again.
    #[test]
    fn the_announced_retention_is_read() {
        let kept = |retention: Retention| discarded_kept(&format!("1767323045006 {retention:?}"));
        let (month, hour) = (Duration::from_secs(30 * 86_400), Duration::from_millis(3_600_500));
        assert_eq!(kept(Retention::default()), Some(month));
        assert_eq!(kept(Retention::all(hour)), Some(hour));
        assert_eq!(kept(Retention::forever()), None);
        assert_eq!(kept(Retention::all(month).kind("fetch", KindRetention::all(hour))), Some(month));
        assert_eq!(discarded_kept(""), None);
    }
}
