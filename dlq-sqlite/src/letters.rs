//! Reading letters: one, a page, a count, the summary, groups. All on a connection that cannot write.

use retry_runtime::dead_letter::{
    Aggregate, Cursor, Filter, Group, GroupKey, LetterDetail, LetterRow, LetterState, Order, Page, PageRequest,
    Summary, from_millis, to_millis,
};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::filter::{Condition, by_value, states};
use crate::grouping::grouped;
use crate::history;
use crate::payload::{self, Payloads, Raw};
use crate::rows::{self, number, small};
use crate::walk::{self, Goal, HINT};

/// One letter with everything.
pub(crate) fn get(
    connection: &Connection,
    payloads: &Payloads,
    scope: &str,
    letter_id: &str,
) -> rusqlite::Result<Option<LetterDetail>> {
    let row = connection
        .prepare_cached(&format!("SELECT {} FROM letter WHERE id = ?1 AND +scope = ?2", rows::LETTER))?
        .query_row(params![letter_id, scope], rows::letter)
        .optional()?;
    let Some(row) = row else { return Ok(None) };
    let payload = payload(connection, row.seq)?.decode(payloads, letter_id);
    let revisions = connection
        .prepare_cached("SELECT count(*) FROM payload WHERE seq = ?1")?
        .query_row([rows::stored(row.seq)], |found| found.get(0).map(small))?;
    let (history, size) = history::of(connection, row.seq)?;
    Ok(Some(LetterDetail::new(row, payload, revisions, history).with_cut(size.cut, size.cut_at)))
}

/// The payload a replay of the letter uses, as its row has it.
pub(crate) fn payload(connection: &Connection, seq: u64) -> rusqlite::Result<Raw> {
    connection
        .prepare_cached(&format!(
            "SELECT {} FROM letter l LEFT JOIN payload p ON p.seq = l.seq AND p.revision = l.payload_revision
             WHERE l.seq = ?1",
            payload::COLUMNS
        ))?
        .query_row([rows::stored(seq)], Raw::read)
}

/// One page, by keyset: the letters of each state, and of each value of the filter's first list, stand in an index in the
/// order of the list, and are merged.
pub(crate) fn list(
    connection: &Connection,
    scope: &str,
    filter: &Filter,
    page: &PageRequest,
) -> rusqlite::Result<Page> {
    let wanted = usize::try_from(page.limit).unwrap_or(usize::MAX).saturating_add(1);
    let goal = Goal { descending: page.order != Order::LongestUnseenFirst, wanted, look_at: page.look_at };
    let walked = walk::walk(connection, &page_queries(scope, filter, page), goal)?;
    let rows = rows_of(connection, &walked.seqs)?;
    let stopped = walked.stopped.map(|(at, seq)| Cursor { last_seen: from_millis(at), seq: number(seq) });
    Ok(Page::looked(rows, page.limit, walked.looked_at, stopped))
}

/// Letters by their numbers, in the given order.
pub(crate) fn rows_of(connection: &Connection, seqs: &[i64]) -> rusqlite::Result<Vec<LetterRow>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {} FROM letter WHERE seq = ?1", rows::LETTER))?;
    seqs.iter().map(|seq| statement.query_row([seq], rows::letter)).collect()
}

/// The walks whose merge is the list behind the cursor. What is not walked is tested, and does not keep the planner from the
/// index.
pub(crate) fn page_queries(scope: &str, filter: &Filter, page: &PageRequest) -> Vec<Condition> {
    let descending = page.order != Order::LongestUnseenFirst;
    let (mut walked, rest) = filter.split();
    let cursor = narrow(&mut walked, page.after, descending);
    let named = !(walked.ids.is_empty() && walked.job_ids.is_empty());
    let (direction, side) = if descending { ("DESC", "<") } else { ("ASC", ">") };
    let mut questions = Vec::new();
    for filter in by_value(&walked) {
        if named {
            // These few letters are sorted.
            questions.push(Condition::of(scope, &filter).in_states(&filter));
        } else {
            let in_state = |state| Condition::of(scope, &filter).in_state(&filter, state);
            questions.extend(states(&walked).into_iter().map(in_state));
        }
    }
    if let Some(cursor) = cursor {
        let place = (to_millis(cursor.last_seen), rows::stored(cursor.seq));
        let behind = |question: &Condition| walk::on_side(question, "last_seen", side, place);
        questions = questions.iter().flat_map(behind).collect();
    }
    let test = Condition::test(&rest);
    let look_at = rows::stored(page.look_at.saturating_add(1));
    let hint = if named { String::new() } else { format!("{HINT}{}", index_of(&walked)) };
    for question in &mut questions {
        question.sql = format!(
            "SELECT last_seen, seq, {} FROM letter{hint} WHERE {} ORDER BY last_seen {direction}, seq {direction} LIMIT ?",
            test.as_test(),
            question.sql
        );
        question.values.splice(0..0, test.values.iter().cloned());
        question.values.push(Value::Integer(look_at));
    }
    questions
}

/// The index that has the letters of each value of the list, state by state, in the order of lists.
fn index_of(walked: &Filter) -> &'static str {
    match walked {
        _ if !walked.fingerprints.is_empty() => "letter_fingerprint_seen",
        _ if !walked.error_classes.is_empty() => "letter_error_class_seen",
        _ if !walked.classes.is_empty() => "letter_class_seen",
        _ if !walked.models.is_empty() => "letter_model_seen",
        _ if !walked.kinds.is_empty() => "letter_kind_seen",
        _ => "letter_seen",
    }
}

/// Of two bounds at the end where the page begins only the narrower one is left: the planner would take either, and walk
/// from the wider one.
fn narrow(walked: &mut Filter, cursor: Option<Cursor>, descending: bool) -> Option<Cursor> {
    let cursor = cursor?;
    let bound = if descending { walked.until } else { walked.since };
    let inside =
        bound.is_none_or(|bound| if descending { cursor.last_seen < bound } else { cursor.last_seen >= bound });
    if !inside {
        return None;
    }
    if descending {
        walked.until = None;
    } else {
        walked.since = None;
    }
    Some(cursor)
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
    let next = keys + usize::from(question.bucket.is_some());
    let counted = |row: &Row<'_>| -> rusqlite::Result<_> {
        let seen = (from_millis(row.get(next + 1)?), from_millis(row.get(next + 2)?));
        Ok((number(row.get(next)?), seen))
    };
    let first = |row: &Row<'_>| {
        let names = (0..keys).map(|n| row.get(n)).collect::<rusqlite::Result<Vec<String>>>()?;
        let bucket = if question.bucket.is_some() { Some(from_millis(row.get(keys)?)) } else { None };
        let (attempts, seen) = counted(row)?;
        Ok(Group::new(names, bucket, 1, attempts, seen))
    };
    let further = |group: &mut Group, row: &Row<'_>| {
        let (attempts, (first_seen, last_seen)) = counted(row)?;
        group.letters += 1;
        group.attempts = group.attempts.saturating_add(attempts);
        group.first_seen = group.first_seen.min(first_seen);
        group.last_seen = group.last_seen.max(last_seen);
        Ok(())
    };
    let mut groups = grouped(statement.query(params_from_iter(query.values))?, next, first, further)?;
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
    columns.extend(["attempts", "first_seen", "last_seen"].map(str::to_owned));
    query.sql = format!("SELECT {} FROM letter WHERE {}", columns.join(", "), query.sql);
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
