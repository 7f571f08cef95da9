//! What an operator does to one letter by hand (STORE S1).

use retry_runtime::attempt::cut_middle;
use retry_runtime::dead_letter::{Actor, Edit, Edited, LetterRow, MAX_ACTOR_NAME, MAX_ACTOR_REASON, RevisionSource};
use retry_runtime::error::StoreError;
use rusqlite::params;

use crate::claim::{Verdict, find, unknown};
use crate::failpoints;
use crate::payload::{self, About};
use crate::rows::{self, Tx, small, stored};

/// Parks a closed letter again.
pub(crate) fn restore(tx: Tx<'_>, letter_id: &str, more_replays: u32, actor: &Actor) -> Verdict<LetterRow> {
    let detail = format!("{more_replays} more replays");
    change(tx, letter_id, "restored", &detail, actor, |row| row.restore(more_replays))
}

/// Closes a letter that nobody will replay.
pub(crate) fn discard(tx: Tx<'_>, letter_id: &str, actor: &Actor) -> Verdict<LetterRow> {
    change(tx, letter_id, "discarded", "", actor, |row| row.discard(actor, tx.now))
}

/// Closes a letter whose work was done in another way.
pub(crate) fn resolve(tx: Tx<'_>, letter_id: &str, actor: &Actor) -> Verdict<LetterRow> {
    change(tx, letter_id, "resolved", "", actor, |row| row.resolve(actor, tx.now))
}

/// One change of one row and its event; neither when it is refused.
fn change(
    tx: Tx<'_>,
    letter_id: &str,
    what: &str,
    detail: &str,
    actor: &Actor,
    rule: impl FnOnce(&mut LetterRow) -> Result<(), StoreError>,
) -> Verdict<LetterRow> {
    let Some(mut row) = find(tx, letter_id)? else { return Ok(Err(unknown(letter_id))) };
    let before = row.state;
    failpoints::change("hand")?;
    if let Err(refused) = rule(&mut row) {
        return Ok(Err(refused));
    }
    rows::save(tx, &row)?;
    failpoints::hit("hand.between")?;
    rows::event(tx, Some(row.seq), what, Some(actor), (Some(before), Some(row.state)), detail)?;
    Ok(Ok(row))
}

/// Gives a letter another payload, as a revision of its own.
pub(crate) fn edit(tx: Tx<'_>, edit: &Edit, actor: &Actor) -> Verdict<Edited> {
    let Some(row) = find(tx, &edit.letter_id)? else { return Ok(Err(unknown(&edit.letter_id))) };
    let hash = payload::hash(edit.payload.as_bytes());
    let (highest, is_same): (u32, bool) = tx
        .connection
        .prepare_cached(
            "SELECT coalesce(max(revision), 0), coalesce(max(sha256 = ?2 AND revision = ?3), 0) FROM payload WHERE seq = ?1",
        )?
        .query_row(params![stored(row.seq), hash, row.payload_revision], |found| Ok((small(found.get(0)?), found.get(1)?)))?;
    let mut edited = row.clone();
    if let Err(refused) = edited.edit(edit, highest) {
        return Ok(Err(refused));
    }
    if is_same {
        return Ok(Ok(Edited::new(row, false)));
    }
    failpoints::change("edit")?;
    rows::save(tx, &edited)?;
    failpoints::hit("edit.between")?;
    let (name, reason) = (cut_middle(&actor.name, MAX_ACTOR_NAME), cut_middle(&actor.reason, MAX_ACTOR_REASON));
    let about = About {
        seq: row.seq,
        revision: edited.payload_revision,
        source: RevisionSource::Edit.as_str(),
        actor: Some(&name),
        reason: Some(&reason),
    };
    payload::write(tx, about, &edit.payload, None)?;
    let detail = format!("revision {} from {}", edited.payload_revision, edit.base_revision);
    rows::event(tx, Some(row.seq), "edited", Some(actor), (Some(row.state), Some(row.state)), &detail)?;
    Ok(Ok(Edited::new(edited, true)))
}
