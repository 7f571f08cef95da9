//! Members: the next ones, and what becomes of each.

use retry_runtime::dead_letter::{
    Actor, ClaimRequest, ItemOutcome, LetterRow, MemberClaim, MemberStep, Next, Operation, OperationStatus,
    OperationTicket, Verb, act, only_for,
};
use rusqlite::{OptionalExtension, params};

use super::{rows, run};
use crate::claim::{self, Taken, Verdict};
use crate::failpoints;
use crate::rows::{self as letter_rows, Tx, event, save, small, stored};

/// So many members are read at once.
const CHUNK: u32 = 100;

/// For which operation a letter is being replayed.
pub(crate) const RUNNING: &str =
    "SELECT op_id FROM op_item INDEXED BY op_item_running WHERE seq = ?1 AND outcome = 'running'";

/// The members not begun, by number.
pub(crate) const PENDING: &str = "SELECT seq, revision FROM op_item INDEXED BY op_item_outcome
     WHERE op_id = ?1 AND outcome = 'pending' ORDER BY seq LIMIT ?2";

/// Members whose letter is no longer being replayed, and whose outcome was not written: a program that knows no operations
/// ended the replay.
pub(crate) const STRANDED: &str = "SELECT i.seq FROM op_item i INDEXED BY op_item_outcome
     LEFT JOIN letter l ON l.seq = i.seq
     WHERE i.op_id = ?1 AND i.outcome = 'running' AND coalesce(l.state, '') <> 'replaying'";

/// Writes what became of a member.
pub(crate) fn put(tx: Tx<'_>, op_id: &str, seq: u64, (outcome, detail): (ItemOutcome, &str)) -> rusqlite::Result<()> {
    tx.connection
        .prepare_cached("UPDATE op_item SET outcome = ?3, detail = ?4, at = ?5 WHERE op_id = ?1 AND seq = ?2")?
        .execute(params![op_id, stored(seq), outcome.as_str(), (!detail.is_empty()).then_some(detail), tx.millis()])?;
    Ok(())
}

/// The letter is no longer replayed: where that was for an operation, its member has this outcome. Gives the operation.
pub(crate) fn ended(
    tx: Tx<'_>,
    seq: u64,
    (outcome, detail): (ItemOutcome, String),
) -> rusqlite::Result<Option<String>> {
    let op_id: Option<String> =
        tx.connection.prepare_cached(RUNNING)?.query_row([stored(seq)], |row| row.get(0)).optional()?;
    if let Some(op_id) = &op_id {
        put(tx, op_id, seq, (outcome, &detail))?;
    }
    Ok(op_id)
}

fn pending(tx: Tx<'_>, op_id: &str, limit: u32) -> rusqlite::Result<Vec<(u64, u32)>> {
    tx.connection
        .prepare_cached(PENDING)?
        .query_map(params![op_id, limit], |row| Ok((row.get(0).map(letter_rows::number)?, small(row.get(1)?))))?
        .collect()
}

fn letter(tx: Tx<'_>, seq: u64) -> rusqlite::Result<Option<LetterRow>> {
    tx.connection
        .prepare_cached(&format!("SELECT {} FROM letter WHERE seq = ?1 AND +scope = ?2", letter_rows::LETTER))?
        .query_row(params![stored(seq), tx.scope], letter_rows::letter)
        .optional()
}

/// What a runner got; the payloads are decoded after the commit.
pub(crate) struct Got {
    pub(crate) operation: Operation,
    pub(crate) taken: Vec<Taken>,
    pub(crate) next: Next,
}

/// Claims the next members of a replay.
pub(crate) fn claim(tx: Tx<'_>, ticket: &OperationTicket, claim: &MemberClaim, actor: &Actor) -> Verdict<Got> {
    claim::reap(tx, actor)?;
    let mut operation = match run::held(tx, ticket)? {
        Ok(operation) if operation.verb != Verb::Replay => return Ok(Err(only_for(operation.verb))),
        Ok(operation) => operation,
        Err(refused) => return Ok(Err(refused)),
    };
    let tx = tx.in_operation(Some(&ticket.op_id));
    if operation.counts.pending() == 0 && operation.counts.running() > 0 {
        take_stranded(tx, &mut operation)?;
    }
    failpoints::change("operation.claim")?;
    let before = operation.clone();
    let mut claimed = Vec::new();
    let next = next_members(tx, &mut operation, claim, actor, &mut claimed)?;
    run::save_if_changed(tx, &before, &operation, actor)?;
    Ok(Ok(Got { operation, taken: claimed, next }))
}

fn next_members(
    tx: Tx<'_>,
    operation: &mut Operation,
    claim: &MemberClaim,
    actor: &Actor,
    claimed: &mut Vec<Taken>,
) -> rusqlite::Result<Next> {
    let mut request = ClaimRequest::new(claim.kinds.iter().map(String::as_str), claim.owner.as_str());
    request.lease = claim.lease;
    let mut looked = 0;
    loop {
        // As many as may be needed, and a few more where some are passed over.
        let chunk = pending(tx, &operation.id, claim.limit.saturating_mul(2).clamp(1, CHUNK))?;
        let chunk_is_empty = chunk.is_empty();
        for (seq, revision) in chunk {
            if let Some(next) = operation.before_next(!claimed.is_empty(), tx.now) {
                return Ok(next);
            }
            if claimed.len() >= usize::try_from(claim.limit).unwrap_or(usize::MAX) || looked >= claim.look_at {
                return Ok(Next::More);
            }
            looked += 1;
            let row = letter(tx, seq)?;
            let step = MemberStep::of(row.as_ref(), revision, &claim.kinds, &operation.options, tx.now);
            let (outcome, detail) = match (step, row) {
                (MemberStep::Take, Some(row)) => {
                    claimed.push(claim::hand_out(tx, row, &request, actor)?);
                    (ItemOutcome::Running, String::new())
                }
                (MemberStep::Pass(outcome, detail), _) => (outcome, detail),
                _ => (ItemOutcome::Removed, String::new()),
            };
            failpoints::hit("operation.claim.between")?;
            put(tx, &operation.id, seq, (outcome, &detail))?;
            operation.counts.step(ItemOutcome::Pending, outcome);
        }
        if chunk_is_empty {
            return Ok(operation.before_next(!claimed.is_empty(), tx.now).unwrap_or(Next::More));
        }
    }
}

fn take_stranded(tx: Tx<'_>, operation: &mut Operation) -> rusqlite::Result<()> {
    let stranded = tx
        .connection
        .prepare_cached(STRANDED)?
        .query_map([&operation.id], |row| row.get(0).map(letter_rows::number))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for seq in stranded {
        put(tx, &operation.id, seq, (ItemOutcome::Pending, "its replay ended elsewhere"))?;
        operation.counts.step(ItemOutcome::Running, ItemOutcome::Pending);
    }
    Ok(())
}

/// Gives a member back whose handler could not be started.
pub(crate) fn not_started(
    tx: Tx<'_>,
    ticket: &OperationTicket,
    (letter_id, fence): (&str, u64),
    why: &str,
    actor: &Actor,
) -> Verdict<LetterRow> {
    if rows::find(tx.connection, tx.scope, &ticket.op_id)?.is_none() {
        return Ok(Err(run::unknown(&ticket.op_id)));
    }
    let release = retry_runtime::dead_letter::Release::Held { fence };
    claim::release_as(tx, letter_id, release, (ItemOutcome::NotStarted, why.to_owned()), actor)
}

/// Discards or restores the next members.
pub(crate) fn advance(tx: Tx<'_>, ticket: &OperationTicket, limit: u32, actor: &Actor) -> Verdict<Operation> {
    let mut operation = match run::held(tx, ticket)? {
        Ok(operation) if operation.verb == Verb::Replay => return Ok(Err(only_for(operation.verb))),
        Ok(operation) => operation,
        Err(refused) => return Ok(Err(refused)),
    };
    let tx = tx.in_operation(Some(&ticket.op_id));
    failpoints::change("operation.advance")?;
    let before = operation.clone();
    if operation.status == OperationStatus::Running {
        for (seq, revision) in pending(tx, &operation.id, limit)? {
            let mut row = letter(tx, seq)?;
            let state = row.as_ref().map(|row| row.state);
            let (outcome, detail) = act(operation.verb, row.as_mut(), revision, actor, tx.now);
            if let (ItemOutcome::Discarded | ItemOutcome::Restored, Some(row)) = (outcome, &row) {
                save(tx, row)?;
                event(
                    tx,
                    Some(seq),
                    outcome.as_str(),
                    Some(actor),
                    (state, Some(row.state)),
                    &operation.verb.detail(),
                )?;
            }
            failpoints::hit("operation.advance.between")?;
            put(tx, &operation.id, seq, (outcome, &detail))?;
            operation.counts.step(ItemOutcome::Pending, outcome);
        }
        if operation.counts.pending() == 0 {
            operation.run_out(tx.now);
        }
    }
    run::save_if_changed(tx, &before, &operation, actor)?;
    Ok(Ok(operation))
}
