//! Looking at operations, on a connection that cannot write.

use std::time::SystemTime;

use retry_runtime::dead_letter::{ItemOutcome, ItemPage, Operation, OperationItem, from_millis, to_millis};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::{rows, run};
use crate::claim::Verdict;
use crate::filter::Condition;
use crate::rows::{number, small, stored};

/// A page of operations, the newest first.
pub(crate) fn operations(
    connection: &Connection,
    scope: &str,
    after: Option<&str>,
    limit: u32,
) -> rusqlite::Result<Vec<Operation>> {
    let query = operations_query(scope, after, limit);
    let mut found = connection
        .prepare_cached(&query.sql)?
        .query_map(params_from_iter(query.values), rows::operation)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for operation in &mut found {
        operation.counts = rows::counts(connection, &operation.id)?;
    }
    Ok(found)
}

/// The operations that a runner may take, the oldest first.
pub(crate) fn waiting(
    connection: &Connection,
    scope: &str,
    now: SystemTime,
    limit: u32,
) -> rusqlite::Result<Vec<Operation>> {
    let mut found = connection
        .prepare_cached(&waiting_query())?
        .query_map(params![scope, to_millis(now), limit], rows::operation)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for operation in &mut found {
        operation.counts = rows::counts(connection, &operation.id)?;
    }
    Ok(found)
}

/// Through all operations of the scope in their order: there are as many as people have started.
pub(crate) fn waiting_query() -> String {
    format!(
        "SELECT {} FROM op INDEXED BY op_scope
         WHERE scope = ?1 AND status IN ('pending', 'running') AND (status = 'pending' OR lease_until < ?2)
         ORDER BY id LIMIT ?3",
        rows::OPERATION
    )
}

/// Ids rise with time.
pub(crate) fn operations_query(scope: &str, after: Option<&str>, limit: u32) -> Condition {
    let mut query = Condition::default();
    query.and("scope = ?", [Value::Text(scope.to_owned())]);
    if let Some(after) = after {
        query.and("id < ?", [Value::Text(after.to_owned())]);
    }
    query.values.push(Value::Integer(i64::from(limit)));
    query.sql = format!("SELECT {} FROM op WHERE {} ORDER BY id DESC LIMIT ?", rows::OPERATION, query.sql);
    query
}

/// A page of members, by number.
pub(crate) fn items(
    connection: &Connection,
    scope: &str,
    op_id: &str,
    outcome: Option<ItemOutcome>,
    (after, limit): (Option<u64>, u32),
) -> Verdict<ItemPage> {
    if rows::find(connection, scope, op_id)?.is_none() {
        return Ok(Err(run::unknown(op_id)));
    }
    let query = items_query(op_id, outcome, after, limit);
    let items = connection
        .prepare_cached(&query.sql)?
        .query_map(params_from_iter(query.values), |row| {
            let mut item = OperationItem::new(number(row.get(0)?), row.get(1)?, small(row.get(2)?));
            item.outcome = rows::outcome(&row.get::<_, String>(3)?);
            item.detail = row.get(4)?;
            item.at = row.get::<_, Option<i64>>(5)?.map(from_millis);
            Ok(item)
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(Ok(ItemPage::of(items, limit)))
}

pub(crate) fn items_query(op_id: &str, outcome: Option<ItemOutcome>, after: Option<u64>, limit: u32) -> Condition {
    let mut query = Condition::default();
    query.and("i.op_id = ?", [Value::Text(op_id.to_owned())]);
    if let Some(outcome) = outcome {
        query.and("i.outcome = ?", [Value::Text(outcome.as_str().to_owned())]);
    }
    if let Some(after) = after {
        query.and("i.seq > ?", [Value::Integer(stored(after))]);
    }
    query.values.push(Value::Integer(i64::from(limit).saturating_add(1)));
    // Without the hint the planner takes the primary key, and looks at every member for the few of a rare outcome.
    let index = if outcome.is_some() { "INDEXED BY op_item_outcome" } else { "" };
    query.sql = format!(
        "SELECT i.seq, l.id, i.revision, i.outcome, i.detail, i.at FROM op_item i {index}
         LEFT JOIN letter l ON l.seq = i.seq WHERE {} ORDER BY i.seq LIMIT ?",
        query.sql
    );
    query
}
