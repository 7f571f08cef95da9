//! Replays: taking letters, keeping their leases, writing results (STORE S1, D12, D13, D15, D16).

use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    Actor, ClaimRequest, Claimed, Finish, HistoryEntry, ItemOutcome, LetterRow, LetterState, Release, ended_as,
    released_as, to_millis,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use rusqlite::{OptionalExtension, params};

use crate::due::{Places, due};
use crate::failpoints;
use crate::history;
use crate::journal;
use crate::letters;
use crate::operations::members;
use crate::payload::{Payloads, Raw};
use crate::rows::{self, Tx, stored};

/// What a verb gives: the outer error undoes it, the inner one is an answer that is kept.
pub(crate) type Verdict<T> = rusqlite::Result<Result<T, StoreError>>;

/// How many expired leases one statement takes back.
const REAP_AT_ONCE: u32 = 100;

/// A letter taken for a replay. Its payload is decoded after the commit: one that cannot be read fails no claim.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) row: LetterRow,
    pub(crate) payload: Raw,
}

impl Taken {
    pub(crate) fn decode(self, payloads: &Payloads) -> Claimed {
        let payload = self.payload.decode(payloads, &self.row.letter_id);
        Claimed::new(self.row, payload)
    }
}

/// Takes parked letters that are due, after taking back the leases that have run out.
pub(crate) fn claim(
    tx: Tx<'_>,
    request: &ClaimRequest,
    places: &Places,
    actor: &Actor,
) -> rusqlite::Result<Vec<Taken>> {
    reap(tx, actor)?;
    let mut claimed = Vec::new();
    for row in due(tx, request, places)? {
        claimed.push(hand_out(tx, row, request, actor)?);
    }
    Ok(claimed)
}

/// Takes one parked letter.
pub(crate) fn hand_out(
    tx: Tx<'_>,
    mut row: LetterRow,
    request: &ClaimRequest,
    actor: &Actor,
) -> rusqlite::Result<Taken> {
    failpoints::change("claim")?;
    row.claim(request, tx.now);
    tx.connection
        .prepare_cached(
            "UPDATE letter SET state = ?2, fence = ?3, owner = ?4, lease_until = ?5, failed_again = ?6 WHERE seq = ?1",
        )?
        .execute(params![
            stored(row.seq),
            row.state.as_str(),
            stored(row.fence),
            row.owner,
            row.lease_until.map(to_millis),
            row.failed_again
        ])?;
    failpoints::hit("claim.between")?;
    let states = (Some(LetterState::Parked), Some(row.state));
    rows::event(tx, Some(row.seq), "claimed", Some(actor), states, &request.owner)?;
    let payload = letters::payload(tx.connection, row.seq)?;
    Ok(Taken { row, payload })
}

/// The leases that have run out. Without the hint the planner prefers the equality on `state` of another index, and sorts.
pub(crate) fn expired_query() -> String {
    format!(
        "SELECT {} FROM letter INDEXED BY letter_lease WHERE state = 'replaying' AND lease_until < ?1
         ORDER BY lease_until LIMIT ?2",
        rows::LETTER
    )
}

/// Takes back every lease that has run out, and parks the jobs of processes that died.
pub(crate) fn reap(tx: Tx<'_>, actor: &Actor) -> rusqlite::Result<Vec<LetterRow>> {
    let mut reaped = journal::reap(tx)?;
    loop {
        let expired = tx
            .connection
            .prepare_cached(&expired_query())?
            .query_map(params![tx.millis(), REAP_AT_ONCE], rows::letter)?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        if expired.is_empty() {
            return Ok(reaped);
        }
        for mut row in expired {
            failpoints::change("reap")?;
            let entry = row.reap(actor, tx.now);
            rows::save(tx, &row)?;
            failpoints::hit("reap.between")?;
            history::add(tx, row.seq, &[entry])?;
            let operation = members::ended(tx, row.seq, ended_as(&row, true))?;
            let tx = tx.in_operation(operation.as_deref());
            let states = (Some(LetterState::Replaying), Some(row.state));
            rows::event(tx, Some(row.seq), "lease_expired", Some(actor), states, "")?;
            reaped.push(row);
        }
    }
}

/// Writes a replay's result: row, history and event together.
pub(crate) fn finish(tx: Tx<'_>, result: &Finish, actor: &Actor) -> Verdict<LetterRow> {
    let Some(mut row) = find(tx, &result.letter_id)? else { return Ok(Err(unknown(&result.letter_id))) };
    failpoints::change("finish")?;
    let before = row.state;
    let entries = result.entries(tx.now);
    if let Err(stale) = row.finish(result, actor, tx.now) {
        let late: Vec<_> = entries.into_iter().map(HistoryEntry::late).collect();
        history::add(tx, row.seq, &late)?;
        let states = (Some(before), Some(before));
        rows::event(tx, Some(row.seq), "late_result", Some(actor), states, result.outcome.as_str())?;
        return Ok(Err(stale));
    }
    rows::save(tx, &row)?;
    failpoints::hit("finish.between")?;
    history::add(tx, row.seq, &entries)?;
    let states = (Some(before), Some(row.state));
    let operation = members::ended(tx, row.seq, ended_as(&row, false))?;
    let tx = tx.in_operation(operation.as_deref());
    rows::event(tx, Some(row.seq), "replayed", Some(actor), states, result.outcome.as_str())?;
    Ok(Ok(row))
}

/// Extends a lease from now.
pub(crate) fn extend(tx: Tx<'_>, letter_id: &str, fence: u64, lease: Duration) -> Verdict<SystemTime> {
    let Some(mut row) = find(tx, letter_id)? else { return Ok(Err(unknown(letter_id))) };
    failpoints::change("extend")?;
    let end = match row.extend(fence, lease, tx.now) {
        Ok(end) => end,
        Err(stale) => return Ok(Err(stale)),
    };
    tx.connection
        .prepare_cached("UPDATE letter SET lease_until = ?2 WHERE seq = ?1 AND state = 'replaying' AND fence = ?3")?
        .execute(params![stored(row.seq), to_millis(end), stored(fence)])?;
    Ok(Ok(end))
}

/// Puts a letter back without a result.
pub(crate) fn release(tx: Tx<'_>, letter_id: &str, release: Release, actor: &Actor) -> Verdict<LetterRow> {
    release_as(tx, letter_id, release, released_as(release), actor)
}

/// The same; where it was replayed for an operation, its member becomes this.
pub(crate) fn release_as(
    tx: Tx<'_>,
    letter_id: &str,
    release: Release,
    member: (ItemOutcome, String),
    actor: &Actor,
) -> Verdict<LetterRow> {
    let Some(mut row) = find(tx, letter_id)? else { return Ok(Err(unknown(letter_id))) };
    let before = row.state;
    failpoints::change("release")?;
    if let Err(refused) = row.release(release, tx.now) {
        return Ok(Err(refused));
    }
    rows::save(tx, &row)?;
    let operation = members::ended(tx, row.seq, member)?;
    let tx = tx.in_operation(operation.as_deref());
    rows::event(tx, Some(row.seq), "released", Some(actor), (Some(before), Some(row.state)), release.as_str())?;
    Ok(Ok(row))
}

pub(crate) fn find(tx: Tx<'_>, letter_id: &str) -> rusqlite::Result<Option<LetterRow>> {
    tx.connection
        .prepare_cached(&format!("SELECT {} FROM letter WHERE id = ?1 AND +scope = ?2", rows::LETTER))?
        .query_row(params![letter_id, tx.scope], rows::letter)
        .optional()
}

pub(crate) fn unknown(letter_id: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, format!("no letter `{letter_id}` in this store"))
}
