//! Several ordered questions read as one list, each letter looked at until enough match.
//!
//! Each question walks one index in its own order and gives, for every letter there, its place in the order and whether the
//! rest of the filter is true of it. So a page costs what is looked at, which is counted and bounded, and not what matches.

use rusqlite::{CachedStatement, Connection, params_from_iter};

use crate::filter::Condition;

/// A place in the order: the sorted column, then `seq`.
pub(crate) type Place = (i64, i64);

/// The part of a question on one side of a place in `column, seq`: `<`, `<=` or `>`. Two walks, the letters at the very same
/// `column` and the ones beyond: SQLite does not begin at a pair of values whose second one is the row's number, and would
/// step over all letters of one millisecond.
pub(crate) fn on_side(question: &Condition, column: &str, side: &str, (at, seq): Place) -> [Condition; 2] {
    let strictly = side.trim_end_matches('=');
    let [mut ties, mut beyond] = [question.clone(), question.clone()];
    ties.and(&format!("{column} = ? AND seq {side} ?"), [at.into(), seq.into()]);
    beyond.and(&format!("{column} {strictly} ?"), [at.into()]);
    [ties, beyond]
}

/// What a walk is to find.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    pub(crate) descending: bool,
    /// So many letters that match.
    pub(crate) wanted: usize,
    /// So many letters are looked at, and no more.
    pub(crate) look_at: u64,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// The letters that match, in order.
    pub(crate) seqs: Vec<i64>,
    pub(crate) looked_at: u64,
    /// The last letter looked at, where there may be more that match.
    pub(crate) stopped: Option<Place>,
}

/// Walks. Each question's columns are the place's two and the test.
pub(crate) fn walk(connection: &Connection, questions: &[Condition], goal: Goal) -> rusqlite::Result<Walked> {
    let mut statements =
        questions.iter().map(|question| prepare(connection, &question.sql)).collect::<Result<Vec<_>, _>>()?;
    let mut sources = Vec::with_capacity(statements.len());
    for (statement, question) in statements.iter_mut().zip(questions) {
        let mut rows = statement.query(params_from_iter(&question.values))?;
        if let Some(head) = next(&mut rows)? {
            sources.push((head, rows));
        }
    }
    let mut found = Walked::default();
    let mut last = None;
    while found.seqs.len() < goal.wanted {
        let first = sources.iter().enumerate().min_by(|(_, (a, _)), (_, (b, _))| {
            if goal.descending { b.place.cmp(&a.place) } else { a.place.cmp(&b.place) }
        });
        let Some((at, _)) = first else { return Ok(found) };
        if found.looked_at >= goal.look_at.max(1) {
            found.stopped = last;
            return Ok(found);
        }
        let Some((head, rows)) = sources.get_mut(at) else { return Ok(found) };
        found.looked_at += 1;
        last = Some(head.place);
        if head.matches {
            found.seqs.push(head.place.1);
        }
        match next(rows)? {
            Some(behind) => *head = behind,
            None => drop(sources.swap_remove(at)),
        }
    }
    Ok(found)
}

/// Prepares a statement that names its index. A file of an older schema, opened for reading, may not have it: there the
/// planner does what it can.
pub(crate) fn prepare<'c>(connection: &'c Connection, sql: &str) -> rusqlite::Result<CachedStatement<'c>> {
    let prepared = connection.prepare_cached(sql);
    match (&prepared, sql.split_once(HINT)) {
        (Err(error), Some((before, hint))) if error.to_string().contains("no such index") => {
            let behind = hint.split_once(' ').map_or("", |(_, behind)| behind);
            connection.prepare_cached(&format!("{before} {behind}"))
        }
        _ => prepared,
    }
}

/// What stands before the name of an index that a statement is to use. With statistics in the file the planner may prefer an
/// index of the same columns, and sort.
pub(crate) const HINT: &str = " INDEXED BY ";

struct Head {
    place: Place,
    matches: bool,
}

fn next(rows: &mut rusqlite::Rows<'_>) -> rusqlite::Result<Option<Head>> {
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Head { place: (row.get(0)?, row.get(1)?), matches: row.get(2)? }))
}
