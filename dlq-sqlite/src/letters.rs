//! Reading letters: one, a page, a count, the summary, groups. All on a connection that cannot write.

use retry_runtime::dead_letter::{
    Aggregate, Filter, Group, GroupKey, LetterDetail, LetterRow, LetterState, Order, Page, PageRequest, Summary,
    from_millis, to_millis,
};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::filter::{Condition, states};
use crate::rows::{self, number, small};

/// One letter with everything.
pub(crate) fn get(connection: &Connection, scope: &str, letter_id: &str) -> rusqlite::Result<Option<LetterDetail>> {
    let row = connection
        .prepare_cached(&format!("SELECT {} FROM letter WHERE id = ?1 AND +scope = ?2", rows::LETTER))?
        .query_row(params![letter_id, scope], rows::letter)
        .optional()?;
    let Some(row) = row else { return Ok(None) };
    let payload = payload(connection, &row)?;
    let revisions = connection
        .prepare_cached("SELECT count(*) FROM payload WHERE seq = ?1")?
        .query_row([rows::stored(row.seq)], |found| found.get(0).map(small))?;
    let history = connection
        .prepare_cached(&format!("SELECT {} FROM attempt WHERE seq = ?1 ORDER BY id", rows::HISTORY))?
        .query_map([rows::stored(row.seq)], rows::history)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(Some(LetterDetail::new(row, payload, revisions, history)))
}

/// The payload a replay of the letter uses.
pub(crate) fn payload(
    connection: &Connection,
    row: &LetterRow,
) -> rusqlite::Result<retry_runtime::dead_letter::Payload> {
    connection
        .prepare_cached(
            "SELECT p.encoding, p.bytes, l.payload_error
             FROM letter l LEFT JOIN payload p ON p.seq = l.seq AND p.revision = l.payload_revision WHERE l.seq = ?1",
        )?
        .query_row([rows::stored(row.seq)], |found| {
            Ok(rows::payload(found.get::<_, Option<String>>(0)?.as_deref(), found.get(1)?, found.get(2)?))
        })
}

/// One page, by keyset: each state's letters stand in the index in the order of the list, and the first ones of each are
/// merged.
pub(crate) fn list(
    connection: &Connection,
    scope: &str,
    filter: &Filter,
    page: &PageRequest,
) -> rusqlite::Result<Page> {
    let mut found: Vec<LetterRow> = Vec::new();
    for state in states(filter) {
        let query = page_query(scope, filter, state, page);
        let mut statement = connection.prepare_cached(&query.sql)?;
        let rows = statement.query_map(params_from_iter(query.values), rows::letter)?;
        found.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    found.sort_by_key(|row| (row.last_seen, row.seq));
    if page.order != Order::LongestUnseenFirst {
        found.reverse();
    }
    Ok(Page::of(found, page.limit))
}

/// The first letters of one state behind the cursor, one more than the page holds.
pub(crate) fn page_query(scope: &str, filter: &Filter, state: LetterState, page: &PageRequest) -> Condition {
    let (direction, comparison) = match page.order {
        Order::LongestUnseenFirst => ("ASC", ">"),
        _ => ("DESC", "<"),
    };
    let mut query = Condition::of(scope, filter).in_state(filter, state);
    if let Some(cursor) = &page.after {
        let keys = [Value::Integer(to_millis(cursor.last_seen)), Value::Integer(rows::stored(cursor.seq))];
        query.and(&format!("(last_seen, seq) {comparison} (?, ?)"), keys);
    }
    query.values.push(Value::Integer(i64::from(page.limit).saturating_add(1)));
    query.sql = format!(
        "SELECT {} FROM letter WHERE {} ORDER BY last_seen {direction}, seq {direction} LIMIT ?",
        rows::LETTER,
        query.sql
    );
    query
}

/// How many letters match.
pub(crate) fn count(connection: &Connection, scope: &str, filter: &Filter) -> rusqlite::Result<u64> {
    let query = count_query(scope, filter);
    connection.prepare_cached(&query.sql)?.query_row(params_from_iter(query.values), |row| row.get(0).map(number))
}

pub(crate) fn count_query(scope: &str, filter: &Filter) -> Condition {
    let mut query = Condition::of(scope, filter).in_states(filter);
    // States, kinds and error classes are counted as they come and go.
    let mut counted = Filter::all();
    counted.kinds.clone_from(&filter.kinds);
    counted.error_classes.clone_from(&filter.error_classes);
    counted.states.clone_from(&filter.states);
    query.sql = if *filter == counted {
        format!("SELECT coalesce(sum(n), 0) FROM tally WHERE {}", query.sql)
    } else {
        format!("SELECT count(*) FROM letter WHERE {}", query.sql)
    };
    query
}

pub(crate) const SUMMARY: &str =
    "SELECT state, error_class, sum(n) FROM tally WHERE scope = ?1 GROUP BY state, error_class HAVING sum(n) > 0";

/// What is owed, without the spill.
pub(crate) fn summary(connection: &Connection, scope: &str) -> rusqlite::Result<Summary> {
    let mut summary = Summary::default();
    let mut statement = connection.prepare_cached(SUMMARY)?;
    let mut rows = statement.query([scope])?;
    while let Some(row) = rows.next()? {
        if let Some(state) = LetterState::parse(&row.get::<_, String>(0)?) {
            summary.add(state, &row.get::<_, String>(1)?, number(row.get(2)?));
        }
    }
    Ok(summary)
}

/// Counts over groups.
pub(crate) fn aggregate(connection: &Connection, scope: &str, question: &Aggregate) -> rusqlite::Result<Vec<Group>> {
    let query = aggregate_query(scope, question);
    let keys = question.by.len();
    let mut statement = connection.prepare(&query.sql)?;
    let groups = statement.query_map(params_from_iter(query.values), |row| {
        let names = (0..keys).map(|n| row.get(n)).collect::<rusqlite::Result<Vec<String>>>()?;
        let (bucket, next) = match question.bucket {
            Some(_) => (Some(from_millis(row.get(keys)?)), keys + 1),
            None => (None, keys),
        };
        let seen = (from_millis(row.get(next + 2)?), from_millis(row.get(next + 3)?));
        Ok(Group::new(names, bucket, number(row.get(next)?), number(row.get(next + 1)?), seen))
    })?;
    let mut groups = groups.collect::<rusqlite::Result<Vec<_>>>()?;
    Group::sort(&mut groups);
    Ok(groups)
}

pub(crate) fn aggregate_query(scope: &str, question: &Aggregate) -> Condition {
    let mut columns: Vec<String> = question.by.iter().map(|key| column(*key).to_owned()).collect();
    if let Some(bucket) = question.bucket {
        let width = bucket.width().as_millis();
        columns.push(format!("last_seen - ((last_seen % {width}) + {width}) % {width}"));
    }
    let mut query = Condition::of(scope, &question.filter).in_states(&question.filter);
    let group_by = if columns.is_empty() {
        // Without groups there is one row, also for nothing.
        "HAVING count(*) > 0".to_owned()
    } else {
        let positions: Vec<_> = (1..=columns.len()).map(|n| n.to_string()).collect();
        format!("GROUP BY {}", positions.join(", "))
    };
    columns.extend(["count(*)", "sum(attempts)", "min(first_seen)", "max(last_seen)"].map(str::to_owned));
    query.sql = format!("SELECT {} FROM letter WHERE {} {group_by}", columns.join(", "), query.sql);
    query
}

fn column(key: GroupKey) -> &'static str {
    match key {
        GroupKey::Class => "coalesce(class, '')",
        GroupKey::ErrorClass => "error_class",
        GroupKey::Fingerprint => "fingerprint",
        GroupKey::State => "state",
        GroupKey::Model => "coalesce(model, '')",
        _ => "kind",
    }
}
