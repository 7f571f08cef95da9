//! Rows of the file as the runtime's plain data.

use std::cell::Cell;
use std::time::SystemTime;

use retry_runtime::attempt::cut_middle;
use retry_runtime::dead_letter::{
    Actor, LetterRow, LetterState, MAX_ACTOR_NAME, MAX_ACTOR_REASON, from_millis, to_millis,
};
use retry_runtime::{Disposition, StopReason};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use crate::payload::Payloads;

/// What every change is made with.
#[derive(Clone, Copy)]
pub(crate) struct Tx<'a> {
    pub(crate) connection: &'a Connection,
    /// Now, by the store's clock.
    pub(crate) now: SystemTime,
    pub(crate) scope: &'a str,
    /// This process, for people to read.
    pub(crate) writer: &'a str,
    pub(crate) payloads: &'a Payloads,
    /// The bulk operation this is part of: events carry it.
    pub(crate) operation: Option<&'a str>,
    /// Counts the jobs of dead processes that were parked: said aloud after the commit.
    pub(crate) crashed: &'a Cell<u64>,
}

impl<'a> Tx<'a> {
    /// The same as part of an operation.
    pub(crate) fn in_operation<'b>(self, op_id: Option<&'b str>) -> Tx<'b>
    where
        'a: 'b,
    {
        Tx { operation: op_id, ..self }
    }

    pub(crate) fn millis(&self) -> i64 {
        to_millis(self.now)
    }
}

/// A time as the columns have it.
pub(crate) fn millis(at: SystemTime) -> i64 {
    to_millis(at)
}

/// The columns [`letter`] reads, in its order.
pub(crate) const LETTER: &str = "seq, id, scope, kind, job_id, model, state, reason, disposition, class, code, error_class, \
     error_type, error_message, fingerprint, attempts, parkings, replays, crashes, max_replays, max_crashes, failed_again, \
     fence, owner, lease_until, not_before, replay_after, first_seen, last_seen, closed_at, payload_revision, payload_size, \
     payload_altered, sequence_key, payload_error, closed_by, closed_reason, \
     fingerprint_version";

/// A letter. A word this version does not know (the file may be a newer one's) becomes the nearest it does know: a row
/// that cannot be shown is worse than one shown roughly.
pub(crate) fn letter(row: &Row<'_>) -> rusqlite::Result<LetterRow> {
    let mut out = LetterRow::new(text(row, 1)?, text(row, 3)?, text(row, 4)?);
    out.seq = row.get(0).map(number)?;
    out.scope = text(row, 2)?;
    out.model = some_text(row, 5)?;
    out.state = LetterState::parse(&text(row, 6)?).unwrap_or(LetterState::Parked);
    out.reason = StopReason::parse(&text(row, 7)?).unwrap_or(StopReason::Unknown);
    out.disposition = Disposition::parse(&text(row, 8)?).unwrap_or(Disposition::Unknown);
    out.class = some_text(row, 9)?;
    out.code = row.get(10)?;
    out.error_class = text(row, 11)?;
    out.error_type = text(row, 12)?;
    out.error_message = text(row, 13)?;
    out.fingerprint = text(row, 14)?;
    out.attempts = row.get(15).map(number)?;
    out.parkings = row.get(16).map(number)?;
    out.replays = row.get(17).map(small)?;
    out.crashes = row.get(18).map(small)?;
    out.max_replays = row.get(19).map(small)?;
    out.max_crashes = row.get(20).map(small)?;
    out.failed_again = row.get(21)?;
    out.fence = row.get(22).map(number)?;
    out.owner = some_text(row, 23)?;
    out.lease_until = row.get::<_, Option<i64>>(24)?.map(from_millis);
    out.not_before = some_time(row.get(25)?);
    out.replay_after = some_time(row.get(26)?);
    out.first_seen = from_millis(row.get(27)?);
    out.last_seen = from_millis(row.get(28)?);
    out.closed_at = row.get::<_, Option<i64>>(29)?.map(from_millis);
    out.payload_revision = row.get(30).map(small)?;
    out.payload_size = row.get::<_, Option<i64>>(31)?.map(number);
    out.payload_altered = row.get(32)?;
    out.sequence_key = some_text(row, 33)?;
    out.payload_error = some_text(row, 34)?;
    out.closed_by = some_text(row, 35)?;
    out.closed_reason = some_text(row, 36)?;
    out.fingerprint_version = row.get(37).map(small)?;
    Ok(out)
}

/// A letter's changeable columns, written back after a rule has changed the row.
pub(crate) fn save(tx: Tx<'_>, row: &LetterRow) -> rusqlite::Result<()> {
    tx.connection
        .prepare_cached(
            "UPDATE letter SET model = ?2, state = ?3, reason = ?4, disposition = ?5, class = ?6, code = ?7, \
               error_class = ?8, error_type = ?9, error_message = ?10, fingerprint = ?11, fingerprint_version = ?12, \
               attempts = ?13, parkings = ?14, replays = ?15, crashes = ?16, max_replays = ?17, max_crashes = ?18, \
               failed_again = ?19, fence = ?20, owner = ?21, lease_until = ?22, not_before = ?23, replay_after = ?24, \
               first_seen = ?25, last_seen = ?26, closed_at = ?27, payload_revision = ?28, payload_size = ?29, \
               payload_altered = ?30, writer = ?31, \
               closed_by = ?32, closed_reason = ?33, payload_error = ?34
             WHERE seq = ?1",
        )?
        .execute(params![
            stored(row.seq),
            row.model,
            row.state.as_str(),
            row.reason.as_str(),
            row.disposition.as_str(),
            row.class,
            row.code,
            row.error_class,
            row.error_type,
            row.error_message,
            row.fingerprint,
            row.fingerprint_version,
            stored(row.attempts),
            stored(row.parkings),
            row.replays,
            row.crashes,
            row.max_replays,
            row.max_crashes,
            row.failed_again,
            stored(row.fence),
            row.owner,
            row.lease_until.map(to_millis),
            row.not_before.map_or(0, to_millis),
            row.replay_after.map_or(0, to_millis),
            to_millis(row.first_seen),
            to_millis(row.last_seen),
            row.closed_at.map(to_millis),
            row.payload_revision,
            row.payload_size.map(stored),
            row.payload_altered,
            tx.writer,
            row.closed_by,
            row.closed_reason,
            row.payload_error,
        ])?;
    Ok(())
}

/// Whether a table has a column: a file of schema 1 that is only read is not brought up to date.
pub(crate) fn has(connection: &Connection, table: &str, column: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS(SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2)")?
        .query_row([table, column], |row| row.get(0))
}

/// A text. Bytes that are no UTF-8 (only damage, or another program, writes such) are replaced: one row must not keep every
/// other from being listed, claimed and exported.
pub(crate) fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<String> {
    some_text(row, index).map(Option::unwrap_or_default)
}

/// The same where there may be none.
pub(crate) fn some_text(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Null => None,
        other => return Err(rusqlite::Error::InvalidColumnType(index, "text".to_owned(), other.data_type())),
    })
}

/// 0 stands for "no such time" in the columns that have a default.
pub(crate) fn some_time(millis: i64) -> Option<SystemTime> {
    (millis != 0).then(|| from_millis(millis))
}

/// A count; negative ones are not written.
pub(crate) fn number(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

pub(crate) fn small(n: i64) -> u32 {
    u32::try_from(n.max(0)).unwrap_or(u32::MAX)
}

/// A count for the file.
pub(crate) fn stored(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Something that happened to a letter, or to the store, for the record.
pub(crate) fn event(
    tx: Tx<'_>,
    seq: Option<u64>,
    what: &str,
    actor: Option<&Actor>,
    states: (Option<LetterState>, Option<LetterState>),
    detail: &str,
) -> rusqlite::Result<()> {
    tx.connection
        .prepare_cached(
            "INSERT INTO event(seq, at, what, actor, reason, before, after, detail, scope, op_id)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            seq.map(stored),
            tx.millis(),
            what,
            actor.map(|actor| cut_middle(&actor.name, MAX_ACTOR_NAME)),
            actor.map(|actor| cut_middle(&actor.reason, MAX_ACTOR_REASON)),
            states.0.map(LetterState::as_str),
            states.1.map(LetterState::as_str),
            detail,
            tx.scope,
            tx.operation
        ])?;
    Ok(())
}
