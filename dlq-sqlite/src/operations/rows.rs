//! Operations as rows.

use retry_runtime::dead_letter::{
    Actor, Filter, ItemOutcome, Operation, OperationOptions, OperationStatus, OutcomeCounts, Verb, from_millis,
    to_millis,
};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::rows::{Tx, number, small, stored};

/// The columns [`operation`] reads, in its order.
pub(crate) const OPERATION: &str = "id, verb, status, filter, options, cutoff_seq, actor, reason, fence, runner, lease_until, \
     canary, rate, concurrency, stop_ratio, stop_after, note, created_at, updated_at, finished_at, results_before, \
     failures_before";

/// An operation without its counts.
pub(crate) fn operation(row: &Row<'_>) -> rusqlite::Result<Operation> {
    let options: Value = serde_json::from_str(&row.get::<_, String>(4)?).map_err(|error| unreadable(4, error))?;
    let flag = |name: &str| options.get(name).and_then(Value::as_bool).unwrap_or_default();
    let more_replays = options.get("more_replays").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let verb = row.get::<_, String>(1)?;
    let Some(verb) = Verb::parse(&verb, more_replays.unwrap_or_default()) else {
        return Err(unreadable(1, format!("the verb `{verb}` is not known to this version")));
    };
    let filter = Filter::from_json(&row.get::<_, String>(3)?).map_err(|error| unreadable(3, error))?;
    let stage: Option<i64> = row.get(11)?;
    let mut kept = OperationOptions::default();
    kept.force = flag("force");
    kept.exclude_permanent = flag("exclude_permanent");
    kept.canary = stage.is_some();
    kept.rate = row.get(12)?;
    kept.concurrency = row.get::<_, Option<i64>>(13)?.map_or(1, small);
    kept.stop_ratio = row.get(14)?;
    kept.stop_after = row.get::<_, Option<i64>>(15)?.map_or(kept.stop_after, number);
    let actor = Actor::new(row.get::<_, String>(6)?, row.get::<_, String>(7)?);
    let created_at = from_millis(row.get(17)?);
    let mut out = Operation::new(row.get::<_, String>(0)?, verb, filter, kept, actor, number(row.get(5)?), created_at);
    // A word of a later version: nothing is run that is not understood.
    out.status = OperationStatus::parse(&row.get::<_, String>(2)?).unwrap_or(OperationStatus::Failed);
    out.fence = row.get(8).map(number)?;
    out.runner = row.get(9)?;
    out.lease_until = row.get::<_, Option<i64>>(10)?.map(from_millis);
    out.stage = stage.map(number);
    out.note = row.get(16)?;
    out.updated_at = from_millis(row.get(18)?);
    out.finished_at = row.get::<_, Option<i64>>(19)?.map(from_millis);
    out.counted_from = (row.get(20).map(number)?, row.get(21).map(number)?);
    Ok(out)
}

fn unreadable(column: usize, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}

pub(crate) const COUNTS: &str = "SELECT outcome, n FROM op_count WHERE op_id = ?1 AND n > 0";

/// How many members ended how. An outcome of a later version is one that this version does not touch: changed.
pub(crate) fn counts(connection: &Connection, op_id: &str) -> rusqlite::Result<OutcomeCounts> {
    let mut counts = OutcomeCounts::default();
    let mut statement = connection.prepare_cached(COUNTS)?;
    let mut rows = statement.query([op_id])?;
    while let Some(row) = rows.next()? {
        counts.add(outcome(&row.get::<_, String>(0)?), number(row.get(1)?));
    }
    Ok(counts)
}

pub(crate) fn outcome(text: &str) -> ItemOutcome {
    ItemOutcome::parse(text).unwrap_or(ItemOutcome::Changed)
}

/// One operation with its counts.
pub(crate) fn find(connection: &Connection, scope: &str, op_id: &str) -> rusqlite::Result<Option<Operation>> {
    let found = connection
        .prepare_cached(&format!("SELECT {OPERATION} FROM op WHERE id = ?1 AND +scope = ?2"))?
        .query_row(params![op_id, scope], operation)
        .optional()?;
    let Some(mut found) = found else { return Ok(None) };
    found.counts = counts(connection, op_id)?;
    Ok(Some(found))
}

/// Writes a new operation.
pub(crate) fn insert(tx: Tx<'_>, made: &Operation) -> rusqlite::Result<()> {
    let filter = made.filter.to_json();
    let hash = Sha256::digest(&filter).iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"));
    let options = json!({
        "force": made.options.force,
        "exclude_permanent": made.options.exclude_permanent,
        "more_replays": made.verb.more_replays(),
    });
    tx.connection
        .prepare_cached(
            "INSERT INTO op(id, verb, status, filter, filter_hash, options, cutoff_seq, actor, reason, canary, rate, \
               concurrency, stop_ratio, stop_after, created_at, updated_at, scope)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?15, ?16)",
        )?
        .execute(params![
            made.id,
            made.verb.as_str(),
            made.status.as_str(),
            filter,
            hash,
            options.to_string(),
            stored(made.cutoff_seq),
            made.actor.name,
            made.actor.reason,
            made.stage.map(stored),
            made.options.rate,
            made.options.concurrency,
            made.options.stop_ratio,
            stored(made.options.stop_after),
            to_millis(made.created_at),
            tx.scope,
        ])?;
    Ok(())
}

/// Writes back what a rule has changed.
pub(crate) fn save(tx: Tx<'_>, changed: &Operation) -> rusqlite::Result<()> {
    tx.connection
        .prepare_cached(
            "UPDATE op SET status = ?2, fence = ?3, runner = ?4, lease_until = ?5, canary = ?6, note = ?7, \
               updated_at = ?8, finished_at = ?9, results_before = ?10, failures_before = ?11
             WHERE id = ?1",
        )?
        .execute(params![
            changed.id,
            changed.status.as_str(),
            stored(changed.fence),
            changed.runner,
            changed.lease_until.map(to_millis),
            changed.stage.map(stored),
            changed.note,
            to_millis(changed.updated_at),
            changed.finished_at.map(to_millis),
            stored(changed.counted_from.0),
            stored(changed.counted_from.1),
        ])?;
    Ok(())
}
