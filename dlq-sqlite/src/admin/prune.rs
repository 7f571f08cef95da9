//! Deleting closed letters that retention keeps no longer: a few hundred in a transaction, in the order of the index over the
//! times of their closing, so that nothing is looked at twice.

use std::time::{Duration, SystemTime};

use retry_runtime::counters::Day;
use retry_runtime::dead_letter::{
    Actor, DueReport, LetterState, PruneReport, PruneRequest, Pruned, Retention, from_millis, to_millis,
};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};

use crate::filter::Condition;
use crate::grouping::grouped;
use crate::rows::{self, Tx};

/// So many letters go in one transaction.
pub(crate) const STEP: u32 = 500;

/// Letters of one state that are judged by one time.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    state: LetterState,
    /// Closed at this time or earlier.
    until: SystemTime,
    kept: Duration,
    kinds: Kinds,
}

#[derive(Clone, Debug)]
enum Kinds {
    One(String),
    /// All that have no rule of their own.
    Except(Vec<String>),
}

/// A letter to be deleted.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    seq: i64,
    state: LetterState,
    kind: String,
    error_class: String,
    closed_at: i64,
}

/// A place in the order of deletion: closed at, number.
pub(crate) type Place = (i64, i64);

/// What retention means at `now`, one by one.
pub(crate) fn cuts(retention: &Retention, means: impl Fn(&str) -> bool, now: SystemTime) -> Vec<Cut> {
    let own: Vec<String> = retention.kinds.keys().cloned().collect();
    let named = own.iter().filter(|kind| means(kind)).map(|kind| (retention.of(kind), Kinds::One(kind.clone())));
    let usual = (retention.usual, Kinds::Except(own.clone()));
    let mut cuts = Vec::new();
    for (kept, kinds) in named.chain([usual]) {
        // What is owed is kept for ever, by `of`.
        for state in LetterState::ALL {
            if let Some(kept) = kept.of(*state)
                && let Some(until) = now.checked_sub(kept)
            {
                cuts.push(Cut { state: *state, until, kept, kinds: kinds.clone() });
            }
        }
    }
    cuts
}

impl Cut {
    fn condition(&self, scope: &str, only: &[String]) -> Condition {
        let mut out = Condition::default();
        out.and(&format!("state = '{}' AND closed_at <= ?", self.state), [Value::Integer(to_millis(self.until))]);
        out.and("+scope = ?", [Value::Text(scope.to_owned())]);
        let list = |kinds: &[String]| Value::Text(serde_json::Value::from(kinds).to_string());
        match &self.kinds {
            Kinds::One(kind) => out.and("+kind = ?", [Value::Text(kind.clone())]),
            Kinds::Except(kinds) if kinds.is_empty() => {}
            Kinds::Except(kinds) => out.and("+kind NOT IN (SELECT value FROM json_each(?))", [list(kinds)]),
        }
        if !only.is_empty() {
            out.and("+kind IN (SELECT value FROM json_each(?))", [list(only)]);
        }
        out
    }

    /// The letters behind a place, in order.
    pub(crate) fn query(&self, scope: &str, only: &[String], behind: Place, limit: u32) -> Condition {
        let mut query = self.condition(scope, only);
        query.and("(closed_at, seq) > (?, ?)", [Value::Integer(behind.0), Value::Integer(behind.1)]);
        query.values.push(Value::Integer(i64::from(limit)));
        query.sql = format!(
            "SELECT seq, kind, error_class, closed_at FROM letter INDEXED BY letter_closed
             WHERE {} ORDER BY closed_at, seq LIMIT ?",
            query.sql
        );
        query
    }

    /// Of what sort each of them is.
    pub(crate) fn count_query(&self, scope: &str) -> Condition {
        let mut query = self.condition(scope, &[]);
        query.sql =
            format!("SELECT kind, error_class, closed_at FROM letter INDEXED BY letter_closed WHERE {}", query.sql);
        query
    }
}

/// The next letters to be deleted, those closed longest ago first.
pub(crate) fn look(
    connection: &Connection,
    scope: &str,
    request: &PruneRequest,
    now: SystemTime,
    behind: Place,
    limit: u32,
) -> rusqlite::Result<Vec<Due>> {
    let mut found = Vec::new();
    for cut in cuts(&request.retention, |kind| request.means(kind), now) {
        let query = cut.query(scope, &request.kinds, behind, limit);
        let mut statement = connection.prepare_cached(&query.sql)?;
        let rows = statement.query_map(params_from_iter(query.values), |row| {
            Ok(Due {
                seq: row.get(0)?,
                state: cut.state,
                kind: row.get(1)?,
                error_class: row.get(2)?,
                closed_at: row.get(3)?,
            })
        })?;
        found.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    found.sort_by_key(Due::place);
    found.truncate(limit as usize);
    Ok(found)
}

impl Due {
    pub(crate) fn place(&self) -> Place {
        (self.closed_at, self.seq)
    }

    pub(crate) fn count(&self, report: &mut PruneReport) {
        let what = Pruned::new(self.state, self.kind.clone(), self.error_class.clone());
        report.count(what, from_millis(self.closed_at));
    }
}

/// One step: finds the next letters and deletes them, counted. `now` is what retention is judged by.
pub(crate) fn step(
    tx: Tx<'_>,
    request: &PruneRequest,
    now: SystemTime,
    behind: Place,
    limit: u32,
    actor: &Actor,
) -> rusqlite::Result<Vec<Due>> {
    let due = look(tx.connection, tx.scope, request, now, behind, limit)?;
    let day = Day::of(tx.now).to_string();
    for letter in &due {
        tx.connection
            .prepare_cached(
                "INSERT INTO pruned(day, scope, state, kind, class, n) VALUES(?1, ?2, ?3, ?4, ?5, 1)
                 ON CONFLICT(day, scope, state, kind, class) DO UPDATE SET n = n + 1",
            )?
            .execute(params![day, tx.scope, letter.state.as_str(), letter.kind, letter.error_class])?;
        // Payloads and history go with it; its parkings stay.
        tx.connection.prepare_cached("DELETE FROM event WHERE seq = ?1")?.execute([letter.seq])?;
        tx.connection.prepare_cached("DELETE FROM letter WHERE seq = ?1")?.execute([letter.seq])?;
    }
    if !due.is_empty() {
        let detail = format!("{} closed letters", due.len());
        rows::event(tx, None, "pruned", Some(actor), (None, None), &detail)?;
    }
    Ok(due)
}

/// How many letters may be deleted by `until`, and when the first of them.
pub(crate) fn due_by(
    connection: &Connection,
    scope: &str,
    retention: &Retention,
    until: SystemTime,
) -> rusqlite::Result<DueReport> {
    let mut report = DueReport::default();
    for cut in cuts(retention, |_| true, until) {
        let query = cut.count_query(scope);
        let mut statement = connection.prepare_cached(&query.sql)?;
        let first = |row: &Row<'_>| {
            let what = Pruned::new(cut.state, row.get::<_, String>(0)?, row.get::<_, String>(1)?);
            Ok((what, 1, row.get::<_, i64>(2)?))
        };
        let further = |(_, n, closed_at): &mut (Pruned, u64, i64), row: &Row<'_>| {
            *n += 1;
            *closed_at = (*closed_at).min(row.get(2)?);
            Ok(())
        };
        for (what, n, closed_at) in grouped(statement.query(params_from_iter(query.values))?, 2, first, further)? {
            let first = from_millis(closed_at);
            report.count(what, n, first.checked_add(cut.kept).unwrap_or(first));
        }
    }
    Ok(report)
}
