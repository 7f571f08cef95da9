//! What an operation would be about, and what it is about: one filter, compiled once for both.

use std::time::SystemTime;

use retry_runtime::Disposition;
use retry_runtime::dead_letter::{
    Actor, Filter, ItemOutcome, LetterState, Operation, OperationRequest, Plan, PlanRow, from_millis, to_millis,
};
use retry_runtime::id::Id;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use super::rows;
use crate::failpoints;
use crate::filter::Condition;
use crate::grouping::grouped;
use crate::rows::{Tx, event, number};

/// What would be done; on a connection that cannot write. `counted` and `members` are the request's own filters.
pub(crate) fn plan(
    connection: &Connection,
    scope: &str,
    request: &OperationRequest,
    (counted, members): (&Filter, &Filter),
    now: SystemTime,
) -> rusqlite::Result<Plan> {
    let mut plan = Plan::new(request, now);
    let query = plan_query(scope, counted, now);
    let mut statement = connection.prepare(&query.sql)?;
    let first = |row: &Row<'_>| {
        let state = LetterState::parse(&row.get::<_, String>(0)?).unwrap_or(LetterState::Parked);
        let disposition = Disposition::parse(&row.get::<_, String>(3)?).unwrap_or(Disposition::Unknown);
        let mut group = PlanRow::new(state, row.get::<_, String>(1)?, disposition, 1);
        group.class = row.get(2)?;
        group.altered = row.get(4)?;
        group.without_payload = row.get(5)?;
        group.not_before = if row.get(6)? { Some(from_millis(row.get(7)?)) } else { None };
        Ok(group)
    };
    let further = |group: &mut PlanRow, row: &Row<'_>| {
        group.n += 1;
        group.not_before = match group.not_before {
            Some(earliest) => Some(earliest.min(from_millis(row.get(7)?))),
            None => None,
        };
        Ok(())
    };
    for group in grouped(statement.query(params_from_iter(query.values))?, 7, first, further)? {
        plan.add(&group);
    }
    let query = sample_query(scope, members);
    plan.sample = connection
        .prepare(&query.sql)?
        .query_map(params_from_iter(query.values), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(plan)
}

/// What a plan tells letters apart by.
pub(crate) fn plan_query(scope: &str, filter: &Filter, now: SystemTime) -> Condition {
    let mut query = Condition::of(scope, filter).in_states(filter);
    query.sql = format!(
        "SELECT state, kind, class, disposition, payload_altered, payload_revision = 0 AND payload_error IS NOT NULL,
                not_before > {}, not_before
         FROM letter WHERE {}",
        to_millis(now),
        query.sql
    );
    query
}

fn sample_query(scope: &str, filter: &Filter) -> Condition {
    let mut query = Condition::of(scope, filter).in_states(filter);
    query.values.push(Value::Integer(i64::from(Plan::SAMPLE)));
    query.sql = format!("SELECT id FROM letter WHERE {} ORDER BY seq LIMIT ?", query.sql);
    query
}

/// Makes an operation and freezes its members.
pub(crate) fn start(
    tx: Tx<'_>,
    request: &OperationRequest,
    filter: &Filter,
    actor: &Actor,
) -> rusqlite::Result<Operation> {
    let cutoff = tx
        .connection
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'letter'")?
        .query_row([], |row| row.get(0).map(number))?;
    let id = Id::new(tx.now).to_string();
    let options = request.options.clone();
    let mut made = Operation::new(&id, request.verb, filter.clone(), options, actor.clone(), cutoff, tx.now);
    failpoints::change("operation.start")?;
    rows::insert(tx, &made)?;
    failpoints::hit("operation.start.between")?;
    let members = freeze(tx, &id, filter)?;
    made.counts.add(ItemOutcome::Pending, members);
    let detail = format!("{} of {members} letter{}", made.verb, if members == 1 { "" } else { "s" });
    event(tx.in_operation(Some(&id)), None, "operation_started", Some(actor), (None, None), &detail)?;
    Ok(made)
}

/// Writes down number and payload revision of every letter that matches, and says how many these are.
///
/// Row by row, in the one transaction: `INSERT .. SELECT` into a table with triggers would first put the whole selection
/// aside, in memory.
fn freeze(tx: Tx<'_>, op_id: &str, filter: &Filter) -> rusqlite::Result<u64> {
    let query = freeze_query(tx.scope, filter);
    let mut letters = tx.connection.prepare(&query.sql)?;
    let mut found = letters.query(params_from_iter(query.values))?;
    let mut member = tx.connection.prepare_cached("INSERT INTO op_item(op_id, seq, revision) VALUES(?1, ?2, ?3)")?;
    let mut members = 0;
    while let Some(letter) = found.next()? {
        member.execute((op_id, letter.get::<_, i64>(0)?, letter.get::<_, i64>(1)?))?;
        members += 1;
    }
    Ok(members)
}

pub(crate) fn freeze_query(scope: &str, filter: &Filter) -> Condition {
    let mut query = Condition::of(scope, filter).in_states(filter);
    query.sql = format!("SELECT seq, payload_revision FROM letter WHERE {}", query.sql);
    query
}
