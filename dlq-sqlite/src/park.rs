//! Parking: a new letter, or a merge into the one that is there (STORE D1, D2, D3).

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, DeadLetter, HistoryEntry, HistorySize, KnownPayload, LetterRow, LetterState, ParkingRecord, Payload,
    PayloadStep, from_millis, to_millis,
};
use rusqlite::{OptionalExtension, params};

use crate::claim;
use crate::failpoints;
use crate::groups;
use crate::history;
use crate::journal;
use crate::payload::{self, About, Encoded};
use crate::rows::{self, Tx, small, stored};

/// On which way a letter came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Live,
    Spill,
    /// Of a process that died.
    Journal,
}

impl Origin {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Spill => "spill",
            Self::Journal => "journal",
        }
    }

    /// The failpoints' name of it.
    const fn change(self) -> &'static str {
        match self {
            Self::Live | Self::Journal => "park",
            Self::Spill => "import",
        }
    }

    const fn between(self) -> &'static str {
        match self {
            Self::Live | Self::Journal => "park.between",
            Self::Spill => "import.between",
        }
    }
}

/// Writes the letter down and gives the id it is stored under. A parking that is known changes nothing, unless it was made of
/// a process that was taken for dead. `prepared` is its
/// payload, where that was large.
pub(crate) fn park(
    tx: Tx<'_>,
    letter: &DeadLetter,
    prepared: Option<&Encoded>,
    origin: Origin,
) -> rusqlite::Result<String> {
    let park_id = letter.park_id.to_string();
    journal::remove(tx, &park_id)?;
    let known = tx
        .connection
        .prepare_cached("SELECT letter_id, reason, attempts, failed_at FROM parking WHERE park_id = ?1")?
        .query_row([&park_id], |row| {
            let reason = StopReason::parse(&rows::text(row, 1)?).unwrap_or(StopReason::Unknown);
            let (attempts, failed_at) = (small(row.get(2)?), from_millis(row.get(3)?));
            let parking = ParkingRecord::new(letter.park_id, reason, attempts, failed_at);
            Ok((row.get::<_, String>(0)?, parking))
        })
        .optional()?;
    if let Some((letter_id, parking)) = known {
        if parking.is_guess_of(letter) {
            fail_late(tx, &letter_id, letter, &parking, prepared, origin)?;
        }
        return Ok(letter_id);
    }
    failpoints::change(origin.change())?;
    let (mut row, step) = LetterRow::first(letter);
    groups::arrived(tx, &row)?;
    let history: Vec<_> = letter.history.iter().map(|record| HistoryEntry::parked(letter.park_id, record)).collect();
    let mut size = HistorySize::default();
    size.add(&history);
    if insert(tx, &mut row, letter, step, prepared, size)? {
        history::begin(tx, row.seq, &history, size)?;
    } else {
        row = merge(tx, &row.job_id, letter, prepared)?;
        history::add(tx, row.seq, &history)?;
    }
    failpoints::hit(origin.between())?;
    tx.connection
        .prepare_cached(
            "INSERT INTO parking(park_id, seq, letter_id, reason, attempts, failed_at, taken_at, origin, writer)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            park_id,
            stored(row.seq),
            row.letter_id,
            letter.reason.as_str(),
            letter.attempts,
            to_millis(letter.failed_at),
            tx.millis(),
            origin.as_str(),
            tx.writer
        ])?;
    Ok(row.letter_id)
}

/// Writes a job's first letter. `false`: the job has one already, and nothing was written.
fn insert(
    tx: Tx<'_>,
    row: &mut LetterRow,
    letter: &DeadLetter,
    step: PayloadStep,
    prepared: Option<&Encoded>,
    size: HistorySize,
) -> rusqlite::Result<bool> {
    let seq: Option<i64> = tx
        .connection
        .prepare_cached(
            "INSERT INTO letter(id, scope, kind, job_id, model, state, reason, disposition, class, code, error_class, \
               error_type, error_message, fingerprint, fingerprint_version, attempts, parkings, max_replays, \
               max_crashes, not_before, first_seen, last_seen, parked_at, payload_revision, payload_size, \
               payload_error, writer, payload_altered, history_entries, history_bytes)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
               ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30)
             ON CONFLICT(scope, kind, job_id) DO NOTHING
             RETURNING seq",
        )?
        .query_row(
            params![
                row.letter_id,
                tx.scope,
                row.kind,
                row.job_id,
                row.model,
                row.state.as_str(),
                row.reason.as_str(),
                row.disposition.as_str(),
                row.class,
                row.code,
                row.error_class,
                row.error_type,
                row.error_message,
                row.fingerprint,
                row.fingerprint_version,
                stored(row.attempts),
                stored(row.parkings),
                row.max_replays,
                row.max_crashes,
                row.not_before.map_or(0, to_millis),
                to_millis(row.first_seen),
                to_millis(row.last_seen),
                tx.millis(),
                row.payload_revision,
                row.payload_size.map(stored),
                row.payload_error,
                tx.writer,
                row.payload_altered,
                stored(size.entries),
                stored(size.bytes),
            ],
            |row| row.get(0),
        )
        .optional()?;
    let Some(seq) = seq else { return Ok(false) };
    row.seq = rows::number(seq);
    take_payload(tx, row.seq, step, letter, prepared)?;
    rows::event(tx, Some(row.seq), "parked", Some(&parker(tx, letter)), (None, Some(row.state)), "")?;
    Ok(true)
}

/// Joins the letter of the same job.
fn merge(tx: Tx<'_>, job_id: &str, letter: &DeadLetter, prepared: Option<&Encoded>) -> rusqlite::Result<LetterRow> {
    let mut row = tx
        .connection
        .prepare_cached(&format!("SELECT {} FROM letter WHERE scope = ?1 AND kind = ?2 AND job_id = ?3", rows::LETTER))?
        .query_row(params![tx.scope, letter.kind, job_id], rows::letter)?;
    let before = row.state;
    let known = known_payload(tx, &row, &letter.payload)?;
    let step = row.merge(letter, known, tx.now);
    rows::save(tx, &row)?;
    take_payload(tx, row.seq, step, letter, prepared)?;
    let reopened = before.is_closed() && row.state == LetterState::Parked;
    let what = if reopened { "reopened" } else { "parked" };
    rows::event(tx, Some(row.seq), what, Some(&parker(tx, letter)), (Some(before), Some(row.state)), "")?;
    Ok(row)
}

/// The letter of a call whose process was taken for dead: it takes the place of the parking that was made of it. One that
/// was deleted since stays deleted.
fn fail_late(
    tx: Tx<'_>,
    letter_id: &str,
    letter: &DeadLetter,
    guess: &ParkingRecord,
    prepared: Option<&Encoded>,
    origin: Origin,
) -> rusqlite::Result<()> {
    let Some(mut row) = claim::find(tx, letter_id)? else { return Ok(()) };
    failpoints::change(origin.change())?;
    let before = row.state;
    let known = known_payload(tx, &row, &letter.payload)?;
    let step = row.failed_late(letter, guess, known, tx.now);
    rows::save(tx, &row)?;
    take_payload(tx, row.seq, step, letter, prepared)?;
    let history: Vec<_> = letter.history.iter().map(|record| HistoryEntry::parked(letter.park_id, record)).collect();
    history::add(tx, row.seq, &history)?;
    failpoints::hit(origin.between())?;
    tx.connection
        .prepare_cached(
            "UPDATE parking SET reason = ?2, attempts = ?3, failed_at = ?4, taken_at = ?5, origin = ?6, writer = ?7
             WHERE park_id = ?1",
        )?
        .execute(params![
            letter.park_id.to_string(),
            letter.reason.as_str(),
            letter.attempts,
            to_millis(letter.failed_at),
            tx.millis(),
            origin.as_str(),
            tx.writer
        ])?;
    rows::event(tx, Some(row.seq), "late_failure", Some(&parker(tx, letter)), (Some(before), Some(row.state)), "")
}

/// Who parks: this program, because a call ended so.
fn parker(tx: Tx<'_>, letter: &DeadLetter) -> Actor {
    Actor::new(tx.writer, letter.reason.as_str())
}

fn known_payload(tx: Tx<'_>, row: &LetterRow, payload: &Payload) -> rusqlite::Result<KnownPayload> {
    let Payload::Json(json) = payload else { return Ok(KnownPayload::default()) };
    tx.connection
        .prepare_cached(
            "SELECT coalesce(max(revision), 0),
                    coalesce(max(sha256 = ?2 AND revision = ?3), 0),
                    coalesce(max(sha256 = ?2), 0)
             FROM payload WHERE seq = ?1",
        )?
        .query_row(params![stored(row.seq), payload::hash(json.as_bytes()), row.payload_revision], |found| {
            Ok(KnownPayload { highest: small(found.get(0)?), is_current: found.get(1)?, is_known: found.get(2)? })
        })
}

fn take_payload(
    tx: Tx<'_>,
    seq: u64,
    step: PayloadStep,
    letter: &DeadLetter,
    prepared: Option<&Encoded>,
) -> rusqlite::Result<()> {
    if let (PayloadStep::Add { revision }, Payload::Json(json)) = (step, &letter.payload) {
        let about = About { seq, revision, source: "park", actor: None, reason: None };
        payload::write(tx, about, json, prepared)?;
    }
    Ok(())
}
