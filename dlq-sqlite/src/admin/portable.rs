//! Letters leaving the file, and coming into it.

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, EXPORT_PAGE_BYTES, ExportPage, ExportRequest, FINGERPRINT_VERSION, Filter, Imported, Joined, KnownLetter,
    LetterRecord, LetterRow, LetterState, ParkingRecord, Payload, Revision, from_millis, to_millis,
};
use retry_runtime::id::Id;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::claim::Verdict;
use crate::events;
use crate::filter::Condition;
use crate::history;
use crate::open::schema;
use crate::payload::{self, About, Encoded, Payloads};
use crate::rows::{self, Tx, number, small, stored};

/// One page, in the order of the letters' numbers.
pub(crate) fn export(
    connection: &Connection,
    payloads: &Payloads,
    scope: &str,
    request: &ExportRequest,
) -> rusqlite::Result<ExportPage> {
    let mut page = ExportPage::default();
    page.schema = u32::try_from(schema::VERSION).ok();
    let mut bytes = 0;
    let query = page_query(scope, &request.filter, request.after, request.limit.max(1));
    let mut statement = connection.prepare_cached(&query.sql)?;
    let mut rows = statement.query(params_from_iter(query.values))?;
    while let Some(found) = rows.next()? {
        let row = rows::letter(found)?;
        if page.records.len() >= request.limit.max(1) as usize || bytes >= EXPORT_PAGE_BYTES {
            return Ok(page);
        }
        page.next = Some(row.seq);
        let record = record(connection, payloads, scope, row)?;
        bytes += record.size();
        page.records.push(record.leave());
    }
    page.next = None;
    Ok(page)
}

/// The letters behind a number, one more than the page holds.
pub(crate) fn page_query(scope: &str, filter: &Filter, after: Option<u64>, limit: u32) -> Condition {
    let mut query = Condition::default();
    query.and("seq > ?", [Value::Integer(after.map_or(0, stored))]);
    let meant = Condition::of(scope, filter).in_states(filter);
    query.and(&meant.sql, meant.values);
    query.values.push(Value::Integer(i64::from(limit).saturating_add(1)));
    // The table's own order, whatever the filter: each page goes on where the one before ended. Letters that are named are
    // few, and looked up.
    let walk = if filter.ids.is_empty() && filter.job_ids.is_empty() { "NOT INDEXED" } else { "" };
    query.sql = format!("SELECT {} FROM letter {walk} WHERE {} ORDER BY seq LIMIT ?", rows::LETTER, query.sql);
    query
}

fn record(connection: &Connection, payloads: &Payloads, scope: &str, row: LetterRow) -> rusqlite::Result<LetterRecord> {
    let seq = stored(row.seq);
    let mut record = LetterRecord::new(row);
    record.revisions = events::revisions(connection, payloads, scope, &record.row.letter_id)?;
    let (entries, size) = history::of(connection, record.row.seq)?;
    record.set_history(entries, size);
    record.parkings = connection
        .prepare_cached("SELECT park_id, reason, attempts, failed_at FROM parking WHERE seq = ?1 ORDER BY park_id")?
        .query_map([seq], parking)?
        .filter_map(Result::transpose)
        .collect::<rusqlite::Result<_>>()?;
    record.events = connection
        .prepare_cached("SELECT id, at, what, actor, reason, op_id, before, after, detail, NULL FROM event WHERE seq = ?1 ORDER BY id")?
        .query_map([seq], events::event)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(record)
}

/// `None`: of a later version, whose ids are no ids here.
fn parking(row: &Row<'_>) -> rusqlite::Result<Option<ParkingRecord>> {
    let reason = StopReason::parse(&row.get::<_, String>(1)?).unwrap_or(StopReason::Unknown);
    let (attempts, failed_at) = (small(row.get(2)?), from_millis(row.get(3)?));
    Ok(Id::parse(&row.get::<_, String>(0)?).map(|park_id| ParkingRecord::new(park_id, reason, attempts, failed_at)))
}

/// A letter on its way in, its large payloads prepared.
pub(crate) struct Arriving {
    pub(crate) record: LetterRecord,
    pub(crate) prepared: Vec<Option<Encoded>>,
}

impl Arriving {
    pub(crate) fn new(record: LetterRecord, payloads: &Payloads) -> Self {
        let prepared = record.revisions.iter().map(|revision| payloads.prepare(&revision.payload)).collect();
        Self { record, prepared }
    }

    fn prepared(&self, sha256: &[u8; 32]) -> Option<&Encoded> {
        let at = self.record.revisions.iter().position(|revision| revision.sha256 == *sha256)?;
        self.prepared.get(at).and_then(Option::as_ref)
    }
}

/// Takes a letter in, whole or not at all.
pub(crate) fn import(tx: Tx<'_>, arriving: &Arriving, actor: &Actor) -> Verdict<Imported> {
    let record = &arriving.record;
    if let Err(why) = record.check() {
        return Ok(Ok(Imported::Refused(why)));
    }
    if let Some(bad) = record.revisions.iter().find(|revision| !matches!(revision.payload, Payload::Json(_))) {
        return Ok(Ok(Imported::Refused(format!("revision {} has no payload", bad.revision))));
    }
    let known = tx
        .connection
        .prepare_cached(&format!("SELECT {} FROM letter WHERE scope = ?1 AND kind = ?2 AND job_id = ?3", rows::LETTER))?
        .query_row(params![tx.scope, record.row.kind, record.row.job_id], rows::letter)
        .optional()?;
    let mut is_known = Vec::new();
    for parking in &record.parkings {
        let sql = "SELECT EXISTS(SELECT 1 FROM parking WHERE park_id = ?1)";
        if tx.connection.prepare_cached(sql)?.query_row([parking.park_id.to_string()], |row| row.get(0))? {
            is_known.push(parking.park_id);
        }
    }
    let Some(row) = known else { return import_new(tx, arriving, &is_known) };
    let known = KnownLetter {
        revisions: tx
            .connection
            .prepare_cached("SELECT revision, sha256 FROM payload WHERE seq = ?1 ORDER BY revision")?
            .query_map([stored(row.seq)], |found| Ok((small(found.get(0)?), found.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?,
        history: history::of(tx.connection, row.seq)?.0,
        row,
    };
    let Some(joined) = record.join(&known, |id| is_known.contains(id), tx.now) else {
        return Ok(Ok(Imported::Known));
    };
    join(tx, arriving, &known, &joined, actor)?;
    Ok(Ok(Imported::Merged))
}

fn join(tx: Tx<'_>, arriving: &Arriving, known: &KnownLetter, joined: &Joined, actor: &Actor) -> rusqlite::Result<()> {
    rows::save(tx, &joined.row)?;
    add_revisions(tx, joined.row.seq, &joined.revisions, arriving)?;
    history::add(tx, joined.row.seq, &joined.history)?;
    add_parkings(tx, &joined.row, &joined.parkings)?;
    let reopened = known.row.state.is_closed() && joined.row.state == LetterState::Parked;
    let detail = if reopened { "joined, and open again" } else { "joined" };
    let states = (Some(known.row.state), Some(joined.row.state));
    rows::event(tx, Some(joined.row.seq), "imported", Some(actor), states, detail)
}

fn import_new(tx: Tx<'_>, arriving: &Arriving, is_known: &[Id]) -> Verdict<Imported> {
    let record = &arriving.record;
    if record.parkings.iter().all(|parking| is_known.contains(&parking.park_id)) {
        return Ok(Ok(Imported::Known));
    }
    let taken = "SELECT EXISTS(SELECT 1 FROM letter WHERE id = ?1)";
    if tx.connection.prepare_cached(taken)?.query_row([&record.row.letter_id], |row| row.get(0))? {
        return Ok(Ok(Imported::Refused(format!("letter {} is another job's here", record.row.letter_id))));
    }
    let mut row = record.row.clone();
    let seq: i64 = tx
        .connection
        .prepare_cached(
            "INSERT INTO letter(id, scope, kind, job_id, state, reason, disposition, error_class, error_type, error_message, \
               fingerprint, fingerprint_version, max_replays, max_crashes, first_seen, last_seen, parked_at, sequence_key, \
               writer)
             VALUES(?1, ?2, ?3, ?4, 'parked', ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
             RETURNING seq",
        )?
        .query_row(
            params![
                row.letter_id,
                tx.scope,
                row.kind,
                row.job_id,
                row.reason.as_str(),
                row.disposition.as_str(),
                row.error_class,
                row.error_type,
                row.error_message,
                row.fingerprint,
                FINGERPRINT_VERSION,
                row.max_replays,
                row.max_crashes,
                to_millis(row.first_seen),
                to_millis(row.last_seen),
                tx.millis(),
                row.sequence_key,
                tx.writer,
            ],
            |found| found.get(0),
        )?;
    row.seq = number(seq);
    rows::save(tx, &row)?;
    add_revisions(tx, row.seq, &record.revisions, arriving)?;
    let size = record.history_size();
    tx.connection
        .prepare_cached(
            "UPDATE letter SET history_entries = ?2, history_bytes = ?3, history_cut = ?4, history_cut_at = ?5 WHERE seq = ?1",
        )?
        .execute(params![seq, stored(size.entries), stored(size.bytes), stored(size.cut), stored(size.cut_at)])?;
    history::begin(tx, row.seq, &record.history, size)?;
    add_parkings(tx, &row, &record.parkings)?;
    let mut statement = tx.connection.prepare_cached(
        "INSERT INTO event(seq, at, what, actor, reason, op_id, before, after, detail, scope)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for event in &record.events {
        statement.execute(params![
            seq,
            to_millis(event.at),
            event.what,
            event.actor,
            event.reason,
            event.operation,
            event.before.map(LetterState::as_str),
            event.after.map(LetterState::as_str),
            event.detail,
            tx.scope,
        ])?;
    }
    Ok(Ok(Imported::New))
}

fn add_revisions(tx: Tx<'_>, seq: u64, revisions: &[Revision], arriving: &Arriving) -> rusqlite::Result<()> {
    for revision in revisions {
        let Payload::Json(json) = &revision.payload else { continue };
        let about = About {
            seq,
            revision: revision.revision,
            source: revision.source.as_str(),
            actor: revision.actor.as_deref(),
            reason: revision.reason.as_deref(),
        };
        // It was written when it was written.
        payload::write(Tx { now: revision.at, ..tx }, about, json, arriving.prepared(&revision.sha256))?;
    }
    Ok(())
}

/// Those that are known already stay as they are.
fn add_parkings(tx: Tx<'_>, row: &LetterRow, parkings: &[ParkingRecord]) -> rusqlite::Result<()> {
    let mut statement = tx.connection.prepare_cached(
        "INSERT INTO parking(park_id, seq, letter_id, reason, attempts, failed_at, taken_at, origin, writer)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 'import', ?8)
         ON CONFLICT(park_id) DO NOTHING",
    )?;
    for parking in parkings {
        statement.execute(params![
            parking.park_id.to_string(),
            stored(row.seq),
            row.letter_id,
            parking.reason.as_str(),
            parking.attempts,
            to_millis(parking.failed_at),
            tx.millis(),
            tx.writer
        ])?;
    }
    Ok(())
}
