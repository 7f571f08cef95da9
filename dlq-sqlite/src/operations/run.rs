//! Runners, and what steers them.

use std::time::Duration;

use retry_runtime::dead_letter::{Actor, ItemOutcome, Leave, Operation, OperationTicket, Steer};
use retry_runtime::error::{StoreError, StoreErrorKind};

use super::rows;
use crate::claim::{self, Verdict};
use crate::rows::{Tx, event};

pub(crate) fn unknown(op_id: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, format!("no operation `{op_id}` in this store"))
}

/// The operation of a ticket, if it is still the newest.
pub(crate) fn held(tx: Tx<'_>, ticket: &OperationTicket) -> Verdict<Operation> {
    let Some(operation) = rows::find(tx.connection, tx.scope, &ticket.op_id)? else {
        return Ok(Err(unknown(&ticket.op_id)));
    };
    Ok(operation.check(ticket).map(|()| operation))
}

/// Writes an operation back where a rule has changed it, and a change of its status into the audit.
pub(crate) fn save_if_changed(
    tx: Tx<'_>,
    before: &Operation,
    after: &Operation,
    actor: &Actor,
) -> rusqlite::Result<()> {
    let unchanged = (before.status, before.fence, before.lease_until, before.stage, before.counted_from)
        == (after.status, after.fence, after.lease_until, after.stage, after.counted_from);
    if unchanged {
        return Ok(());
    }
    rows::save(tx, after)?;
    if before.status != after.status || before.fence != after.fence {
        let detail = after.note.as_deref().or(after.runner.as_deref()).unwrap_or_default();
        let what = format!("operation_{}", after.status);
        event(tx.in_operation(Some(&after.id)), None, &what, Some(actor), (None, None), detail)?;
    }
    Ok(())
}

fn change(
    tx: Tx<'_>,
    op_id: &str,
    actor: &Actor,
    rule: impl FnOnce(&mut Operation) -> Result<(), StoreError>,
) -> Verdict<Operation> {
    let Some(mut operation) = rows::find(tx.connection, tx.scope, op_id)? else { return Ok(Err(unknown(op_id))) };
    let before = operation.clone();
    if let Err(refused) = rule(&mut operation) {
        return Ok(Err(refused));
    }
    save_if_changed(tx, &before, &operation, actor)?;
    Ok(Ok(operation))
}

/// Gives an operation to a runner. Members that wait are pending again.
pub(crate) fn take(
    tx: Tx<'_>,
    op_id: &str,
    (runner, lease, force): (&str, Duration, bool),
    actor: &Actor,
) -> Verdict<Operation> {
    claim::reap(tx, actor)?;
    let taken = change(tx, op_id, actor, |operation| operation.take(runner, lease, force, tx.now))?;
    let mut operation = match taken {
        Ok(operation) => operation,
        Err(refused) => return Ok(Err(refused)),
    };
    for outcome in ItemOutcome::ALL.iter().filter(|outcome| outcome.is_waiting()) {
        if operation.counts.get(*outcome) > 0 {
            wait_no_longer(tx, op_id, *outcome)?;
        }
    }
    operation.counts = rows::counts(tx.connection, op_id)?;
    Ok(Ok(operation))
}

/// Makes members pending, some thousands at a time: a statement that fires triggers first collects what it will change,
/// in memory.
fn wait_no_longer(tx: Tx<'_>, op_id: &str, outcome: ItemOutcome) -> rusqlite::Result<()> {
    const AT_ONCE: i64 = 10_000;
    let mut some = tx.connection.prepare_cached(
        "UPDATE op_item SET outcome = 'pending' WHERE op_id = ?1 AND seq IN
         (SELECT seq FROM op_item WHERE op_id = ?1 AND outcome = ?2 ORDER BY seq LIMIT ?3)",
    )?;
    while some.execute((op_id, outcome.as_str(), AT_ONCE))? > 0 {}
    Ok(())
}

/// Extends the runner's lease.
pub(crate) fn keep(tx: Tx<'_>, ticket: &OperationTicket, lease: Duration) -> Verdict<Operation> {
    let actor = Actor::new("store", "heartbeat");
    change(tx, &ticket.op_id, &actor, |operation| operation.keep(ticket, lease, tx.now))
}

/// Does what an operator wants.
pub(crate) fn steer(tx: Tx<'_>, op_id: &str, steer: Steer, actor: &Actor) -> Verdict<Operation> {
    change(tx, op_id, actor, |operation| operation.steer(steer, tx.now))
}

/// The runner goes before the end.
pub(crate) fn leave(tx: Tx<'_>, ticket: &OperationTicket, leave: &Leave, actor: &Actor) -> Verdict<Operation> {
    change(tx, &ticket.op_id, actor, |operation| operation.leave(ticket, leave.clone(), tx.now))
}
