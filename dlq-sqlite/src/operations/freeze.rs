//! What an operation would be about, and what it is about: one filter, compiled once for both.

use std::time::SystemTime;

use retry_runtime::Disposition;
use retry_runtime::dead_letter::{
    Actor, Filter, ItemOutcome, LetterState, Operation, OperationRequest, Plan, PlanRow, from_millis, to_millis,
};
use retry_runtime::id::Id;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::rows;
use crate::failpoints;
use crate::filter::Condition;
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
    let mut found = statement.query(params_from_iter(query.values))?;
    while let Some(row) = found.next()? {
        let state = LetterState::parse(&row.get::<_, String>(0)?).unwrap_or(LetterState::Parked);
        let disposition = Disposition::parse(&row.get::<_, String>(3)?).unwrap_or(Disposition::Unknown);
        let mut group = PlanRow::new(state, row.get::<_, String>(1)?, disposition, number(row.get(8)?));
        group.class = row.get(2)?;
        group.altered = row.get(4)?;
        group.without_payload = row.get(5)?;
        group.not_before = if row.get(6)? { Some(from_millis(row.get(7)?)) } else { None };
        plan.add(&group);
    }
    let query = sample_query(scope, members);
    plan.sample = connection
        .prepare(&query.sql)?
        .query_map(params_from_iter(query.values), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(plan)
}

/// Letters by all a plan tells apart.
pub(crate) fn plan_query(scope: &str, filter: &Filter, now: SystemTime) -> Condition {
    let mut query = Condition::of(scope, filter).in_states(filter);
    query.sql = format!(
        "SELECT state, kind, class, disposition, payload_altered, payload_revision = 0 AND payload_error IS NOT NULL,
                not_before > {}, min(not_before), count(*)
         FROM letter WHERE {} GROUP BY 1, 2, 3, 4, 5, 6, 7",
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
    let query = freeze_query(tx.scope, &id, filter);
    let members = tx.connection.prepare(&query.sql)?.execute(params_from_iter(query.values))?;
    made.counts.add(ItemOutcome::Pending, members as u64);
    let what = format!("{} of {members} letters", made.verb);
    event(tx.in_operation(Some(&id)), None, "operation_started", Some(actor), (None, None), &what)?;
    Ok(made)
}

/// Number and payload revision of every letter that matches, written down by one statement.
pub(crate) fn freeze_query(scope: &str, op_id: &str, filter: &Filter) -> Condition {
    let mut query = Condition::of(scope, filter).in_states(filter);
    query.values.insert(0, Value::Text(op_id.to_owned()));
    query.sql = format!(
        "INSERT INTO op_item(op_id, seq, revision) SELECT ?, seq, payload_revision FROM letter WHERE {}",
        query.sql
    );
    query
}
