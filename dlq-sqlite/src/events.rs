//! Reading the audit, and the payloads that edits left behind.

use retry_runtime::dead_letter::{
    EventPage, EventQuery, EventRecord, EventsOf, LetterState, Revision, RevisionSource, from_millis,
};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::filter::Condition;
use crate::payload::{self, Payloads, Raw};
use crate::rows::{self, number, small, stored};

/// One page of the audit.
pub(crate) fn events(connection: &Connection, scope: &str, query: &EventQuery) -> rusqlite::Result<EventPage> {
    let seq = match &query.of {
        EventsOf::Letter(letter_id) => match seq_of(connection, letter_id)? {
            Some(seq) => Some(seq),
            None => return Ok(EventPage::of(Vec::new(), query.limit)),
        },
        _ => None,
    };
    let condition = page_query(scope, query, seq, rows::has(connection, "event", "scope")?);
    let events = connection
        .prepare_cached(&condition.sql)?
        .query_map(params_from_iter(condition.values), event)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(EventPage::of(events, query.limit))
}

/// The number of a letter, also of one that retention has taken: its first parking is known for ever, and has its id.
fn seq_of(connection: &Connection, letter_id: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT seq FROM letter WHERE id = ?1 UNION ALL SELECT seq FROM parking WHERE park_id = ?1 LIMIT 1",
        )?
        .query_row([letter_id], |row| row.get(0))
        .optional()
}

/// The events asked about, each walked by one index in its own order.
pub(crate) fn page_query(scope: &str, query: &EventQuery, seq: Option<i64>, says_scope: bool) -> Condition {
    let (direction, comparison) = if query.oldest_first { ("ASC", ">") } else { ("DESC", "<") };
    let mut out = Condition::default();
    // Events of programs of schema 1 do not say their scope; their letter does, while it is there. (What happened to the
    // whole file belongs to every part of it.)
    let said = if says_scope { "e.scope" } else { "NULL" };
    out.and(
        &format!("coalesce({said}, (SELECT l.scope FROM letter l WHERE l.seq = e.seq), ?) = ?"),
        [Value::Text(scope.to_owned()), Value::Text(scope.to_owned())],
    );
    if let Some(seq) = seq {
        out.and("e.seq = ?", [Value::Integer(seq)]);
    }
    if let EventsOf::Operation(operation) = &query.of {
        out.and("e.op_id = ?", [Value::Text(operation.clone())]);
    }
    if let Some(after) = query.after {
        out.and(&format!("e.id {comparison} ?"), [Value::Integer(stored(after))]);
    }
    out.values.push(Value::Integer(i64::from(query.limit).saturating_add(1)));
    out.sql = format!(
        "SELECT e.id, e.at, e.what, e.actor, e.reason, e.op_id, e.before, e.after, e.detail,
                coalesce((SELECT l.id FROM letter l WHERE l.seq = e.seq),
                         (SELECT p.letter_id FROM parking p WHERE p.seq = e.seq LIMIT 1))
         FROM event e WHERE {} ORDER BY e.id {direction} LIMIT ?",
        out.sql
    );
    out
}

pub(crate) fn event(row: &Row<'_>) -> rusqlite::Result<EventRecord> {
    let state = |text: Option<String>| text.as_deref().and_then(LetterState::parse);
    let mut out = EventRecord::new(number(row.get(0)?), from_millis(row.get(1)?), rows::text(row, 2)?);
    out.actor = rows::some_text(row, 3)?;
    out.reason = rows::some_text(row, 4)?;
    out.operation = row.get(5)?;
    out.before = state(rows::some_text(row, 6)?);
    out.after = state(rows::some_text(row, 7)?);
    out.detail = rows::text(row, 8)?;
    out.letter_id = row.get(9)?;
    Ok(out)
}

/// Every payload of a letter.
pub(crate) fn revisions(
    connection: &Connection,
    payloads: &Payloads,
    scope: &str,
    letter_id: &str,
) -> rusqlite::Result<Vec<Revision>> {
    let reason = if rows::has(connection, "payload", "reason")? { "p.reason" } else { "NULL" };
    connection
        .prepare_cached(&format!(
            "SELECT {}, p.revision, p.source, p.created_at, p.actor, {reason}
             FROM letter l JOIN payload p ON p.seq = l.seq WHERE l.id = ?1 AND +l.scope = ?2 ORDER BY p.revision",
            payload::COLUMNS
        ))?
        .query_map(params![letter_id, scope], |row| {
            let source = RevisionSource::parse(&rows::text(row, 7)?).unwrap_or(RevisionSource::Park);
            let mut out = Revision::new(small(row.get(6)?), source, from_millis(row.get(8)?), "");
            out.actor = rows::some_text(row, 9)?;
            out.reason = rows::some_text(row, 10)?;
            out.size = row.get(1).map(number)?;
            // One of another length is no checksum of anything: it stays zero.
            out.sha256 = row.get::<_, Vec<u8>>(4)?.try_into().unwrap_or_default();
            out.payload = Raw::read(row)?.decode(payloads, letter_id);
            Ok(out)
        })?
        .collect()
}
