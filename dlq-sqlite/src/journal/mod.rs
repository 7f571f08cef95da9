//! The journal: jobs under way, and the processes that answer for them (STORE D14, D15).
//!
//! An entry has the `park_id` that its letter would have: parking a letter removes the entry of the same id, in the same
//! statement's transaction, and a letter that comes after its process was taken for dead takes the place of the one that was
//! made of the entry.
//!
//! An entry's owner always has a row, as long as there is an entry: whoever looks for the dead looks at owners, which are few.

use std::time::{Duration, SystemTime};

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, DeadLetter, JobEnd, JournalCounts, LetterRow, Payload, Struck, crashed, from_millis, lease_end, to_millis,
};
use retry_runtime::id::Id;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::claim;
use crate::park::{Origin, park};
use crate::payload::{self, Raw};
use crate::rows::{self, Tx, number, some_text, stored, text};

/// How many jobs of a dead process one statement reads.
const AT_ONCE: u32 = 100;

/// A job is forgotten when its process has been dead for so long: every store looks each half minute.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(120);

/// The encoding of a payload that could not be serialised: `bytes` says why.
const UNSERIALIZABLE: &str = "unserializable";

/// Stands before the encoding of a payload that a rule of the user's altered.
const ALTERED: &str = "altered:";

/// Writes a job down, in the name of an owner whose lease begins anew with it. What is known already stays as it is.
pub(crate) fn enter(tx: Tx<'_>, owner: &str, lease: Duration, job: &DeadLetter) -> rusqlite::Result<()> {
    let park_id = job.park_id.to_string();
    let parked = tx
        .connection
        .prepare_cached("SELECT EXISTS(SELECT 1 FROM parking WHERE park_id = ?1)")?
        .query_row([&park_id], |row| row.get::<_, bool>(0))?;
    if parked {
        return Ok(());
    }
    let until = to_millis(lease_end(tx.now, lease));
    tx.connection
        .prepare_cached(
            "INSERT INTO owner(id, description, started_at, seen_at, lease_until) VALUES(?1, ?2, ?3, ?3, ?4)
             ON CONFLICT(id) DO UPDATE SET seen_at = excluded.seen_at, lease_until = excluded.lease_until",
        )?
        .execute(params![owner, tx.writer, tx.millis(), until])?;
    let mut insert = tx.connection.prepare_cached(
        "INSERT INTO journal(park_id, scope, kind, job_id, model, owner, accepted_at, encoding, size, bytes, blob, sha256)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT(park_id) DO NOTHING",
    )?;
    let mut write =
        |encoding: Option<String>, size: usize, bytes: Option<&[u8]>, blob: Option<&str>, hash: Option<[u8; 32]>| {
            let at = to_millis(job.failed_at);
            let size = stored(size as u64);
            let columns = params![
                park_id, tx.scope, job.kind, job.job_id, job.model, owner, at, encoding, size, bytes, blob, hash
            ];
            insert.execute(columns).map(drop)
        };
    match &job.payload {
        Payload::Json(json) => payload::with_columns(tx, json, None, |encoding, bytes, blob| {
            let mark = if job.payload_altered { ALTERED } else { "" };
            write(Some(format!("{mark}{encoding}")), json.len(), bytes, blob, Some(payload::hash(json.as_bytes())))
        }),
        Payload::Unserializable(why) => {
            write(Some(UNSERIALIZABLE.to_owned()), why.len(), Some(why.as_bytes()), None, None)
        }
        _ => write(None, 0, None, None, None),
    }
}

/// Removes a job's entry: it was parked. Says whether there was one.
pub(crate) fn remove(tx: Tx<'_>, park_id: &str) -> rusqlite::Result<bool> {
    let removed = tx.connection.prepare_cached("DELETE FROM journal WHERE park_id = ?1")?.execute([park_id])?;
    Ok(removed > 0)
}

/// Removes the entry of a job that left no letter; or closes the letter it left when its process was taken for dead.
pub(crate) fn strike(tx: Tx<'_>, park_id: Id, end: JobEnd) -> rusqlite::Result<Struck> {
    let park_id = park_id.to_string();
    if remove(tx, &park_id)? {
        return Ok(Struck::Removed);
    }
    let letter_id: Option<String> = tx
        .connection
        .prepare_cached("SELECT letter_id FROM parking WHERE park_id = ?1 AND reason = ?2")?
        .query_row(params![park_id, StopReason::Crashed.as_str()], |row| row.get(0))
        .optional()?;
    let Some(letter_id) = letter_id else { return Ok(Struck::Nothing) };
    let Some(mut row) = claim::find(tx, &letter_id)? else { return Ok(Struck::Nothing) };
    let (before, actor) = (row.state, Actor::new(tx.writer, "late end"));
    if !row.ended_late(end, &actor, tx.now) {
        return Ok(Struck::Nothing);
    }
    rows::save(tx, &row)?;
    rows::event(tx, Some(row.seq), "late_end", Some(&actor), (Some(before), Some(row.state)), "")?;
    Ok(Struck::Late)
}

/// Extends the lease of an owner; one that has no entries is gone instead. Says whether it is still there.
pub(crate) fn renew(tx: Tx<'_>, owner: &str, lease: Duration) -> rusqlite::Result<bool> {
    let busy = tx
        .connection
        .prepare_cached("SELECT EXISTS(SELECT 1 FROM journal WHERE owner = ?1)")?
        .query_row([owner], |row| row.get::<_, bool>(0))?;
    if !busy {
        tx.connection.prepare_cached("DELETE FROM owner WHERE id = ?1")?.execute([owner])?;
        return Ok(false);
    }
    tx.connection.prepare_cached("UPDATE owner SET seen_at = ?2, lease_until = ?3 WHERE id = ?1")?.execute(params![
        owner,
        tx.millis(),
        to_millis(lease_end(tx.now, lease))
    ])?;
    Ok(true)
}

/// An orderly end: what this owner leaves is nobody's at once.
pub(crate) fn end(tx: Tx<'_>, owner: &str) -> rusqlite::Result<()> {
    tx.connection.prepare_cached("UPDATE owner SET lease_until = 0 WHERE id = ?1")?.execute([owner])?;
    Ok(())
}

/// Whether an owner has died.
pub(crate) const ANY_DEAD: &str = "SELECT EXISTS(SELECT 1 FROM owner WHERE lease_until < ?1)";

/// Parks the jobs of owners whose leases have run out.
pub(crate) fn reap(tx: Tx<'_>) -> rusqlite::Result<Vec<LetterRow>> {
    let dead = tx
        .connection
        .prepare_cached("SELECT id, description FROM owner WHERE lease_until < ?1")?
        .query_map([tx.millis()], |row| Ok((row.get::<_, rusqlite::types::Value>(0)?, text(row, 1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut parked = Vec::new();
    for (owner, description) in dead {
        loop {
            let entries = tx
                .connection
                .prepare_cached(&entries_query())?
                .query_map(params![owner, AT_ONCE], Entry::read)?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            if entries.is_empty() {
                break;
            }
            for entry in entries {
                parked.extend(entry.park(tx, &description)?);
                tx.crashed.set(tx.crashed.get() + 1);
            }
        }
        tx.connection.prepare_cached("DELETE FROM owner WHERE id = ?1")?.execute([owner])?;
    }
    Ok(parked)
}

pub(crate) fn entries_query() -> String {
    format!(
        "SELECT CASE WHEN encoding = '{UNSERIALIZABLE}' THEN NULL ELSE replace(encoding, '{ALTERED}', '') END, size, bytes, \
           blob, sha256, CASE WHEN encoding = '{UNSERIALIZABLE}' THEN CAST(bytes AS TEXT) END, \
           coalesce(encoding LIKE '{ALTERED}%', 0), rowid, park_id, scope, kind, job_id, model, accepted_at
         FROM journal WHERE owner = ?1 LIMIT ?2"
    )
}

/// A job as its row has it: reading it cannot fail for what is in it.
struct Entry {
    rowid: i64,
    scope: String,
    payload: Raw,
    job: DeadLetter,
}

impl Entry {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let accepted: SystemTime = from_millis(row.get(13)?);
        let mut job = DeadLetter::new(text(row, 10)?, StopReason::Crashed, accepted);
        if let Some(park_id) = Id::parse(&text(row, 8)?) {
            job.park_id = park_id;
        }
        (job.job_id, job.model) = (some_text(row, 11)?, some_text(row, 12)?);
        job.payload_altered = row.get(6)?;
        Ok(Self { rowid: row.get(7)?, scope: text(row, 9)?, payload: Raw::read(row)?, job })
    }

    fn park(self, tx: Tx<'_>, process: &str) -> rusqlite::Result<Option<LetterRow>> {
        let Self { rowid, scope, payload, mut job } = self;
        job.payload = payload.decode(tx.payloads, &job.park_id.to_string());
        let tx = Tx { scope: &scope, ..tx };
        let letter_id = park(tx, &crashed(job, process, tx.now), None, Origin::Journal)?;
        tx.connection.prepare_cached("DELETE FROM journal WHERE rowid = ?1")?.execute([rowid])?;
        claim::find(tx, &letter_id)
    }
}

/// How many jobs of a part of the file are under way, and how many are of the dead.
pub(crate) fn counts(c: &Connection, scope: &str, now: SystemTime) -> rusqlite::Result<JournalCounts> {
    c.prepare_cached(
        "SELECT coalesce(sum(coalesce(o.lease_until, 0) >= ?2), 0), coalesce(sum(coalesce(o.lease_until, 0) < ?2), 0)
         FROM journal j LEFT JOIN owner o ON o.id = j.owner WHERE j.scope = ?1",
    )?
    .query_row(params![scope, to_millis(now)], |row| {
        let mut counts = JournalCounts::default();
        counts.running = row.get(0).map(number)?;
        counts.orphaned = row.get(1).map(number)?;
        Ok(counts)
    })
}

/// How many jobs nobody has parked although their process said its last word long ago.
pub(crate) fn forgotten(c: &Connection, scope: &str, now: SystemTime) -> rusqlite::Result<u64> {
    let long_ago = to_millis(now) - i64::try_from(FORGOTTEN_AFTER.as_millis()).unwrap_or(i64::MAX);
    c.prepare_cached(
        "SELECT count(*) FROM journal j JOIN owner o ON o.id = j.owner
         WHERE j.scope = ?1 AND o.lease_until < ?2 AND o.seen_at < ?2",
    )?
    .query_row(params![scope, long_ago], |row| row.get(0).map(number))
}
