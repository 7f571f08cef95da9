//! One line of an export, to text and back.
//!
//! `{"v":1,"crc":"1a2b3c4d","letter":{..}}`: the checksum is over the whole line without its end, with `00000000` in the
//! checksum's place. The first line has `export` in the letter's place, the last one `end`. Times are whole milliseconds since
//! the epoch, durations whole microseconds. Payloads are JSON strings, so that their bytes stay as they are. What is absent
//! or null has its default.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use super::record::{LetterRecord, ParkingRecord};
use crate::dead_letter::spill::crc32;
use crate::dead_letter::{
    AttemptOutcome, EventRecord, HistoryEntry, LetterRow, LetterState, Payload, Revision, RevisionSource, fingerprint,
    from_millis, to_millis,
};
use crate::id::Id;
use crate::stop::StopReason;
use crate::verdict::Disposition;

/// The version this program writes, and the newest it reads.
pub(super) const VERSION: u64 = 1;

const NO_CRC: &str = "00000000";

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Start { schema: Option<u32>, redacted: bool },
    Letter(Box<LetterRecord>),
    End { letters: u64, sha256: String },
}

pub(super) fn start(schema: Option<u32>, redacted: bool) -> String {
    sealed("export", &json!({ "schema": schema, "redacted": redacted }))
}

pub(super) fn letter(record: &LetterRecord) -> String {
    sealed("letter", &letter_value(record))
}

pub(super) fn end(letters: u64, sha256: &str) -> String {
    sealed("end", &json!({ "letters": letters, "sha256": sha256 }))
}

fn head(crc: &str) -> String {
    format!("{{\"v\":{VERSION},\"crc\":\"{crc}\",")
}

fn sealed(what: &str, value: &Value) -> String {
    let tail = format!("\"{what}\":{value}}}");
    let crc = crc32(&[head(NO_CRC).as_bytes(), tail.as_bytes()]);
    format!("{}{tail}\n", head(&format!("{crc:08x}")))
}

/// What a line without its end says.
pub(super) fn parse(line: &[u8]) -> Result<Line, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let version = value.get("v").and_then(Value::as_u64).ok_or("it has no version `v`")?;
    if version > VERSION {
        return Err(format!("a later version wrote it: {version}, and this one knows {VERSION}"));
    }
    let crc = value.get("crc").and_then(Value::as_str).ok_or("it has no checksum `crc`")?;
    let tail = text.strip_prefix(&head(crc)).ok_or("it does not begin with `v` and `crc`")?;
    if format!("{:08x}", crc32(&[head(NO_CRC).as_bytes(), tail.as_bytes()])) != crc {
        return Err("its checksum does not match: it was altered or torn".to_owned());
    }
    if let Some(fields) = value.get("letter").and_then(Value::as_object) {
        return Ok(Line::Letter(Box::new(letter_of(&Fields(fields))?)));
    }
    if let Some(fields) = value.get("export").and_then(Value::as_object) {
        let fields = Fields(fields);
        return Ok(Line::Start { schema: fields.number("schema")?, redacted: fields.flag("redacted") });
    }
    if let Some(fields) = value.get("end").and_then(Value::as_object) {
        let fields = Fields(fields);
        let sha256 = fields.text("sha256")?.unwrap_or_default();
        return Ok(Line::End { letters: fields.number("letters")?.unwrap_or(0), sha256 });
    }
    Err("it is neither a letter nor the start or end of an export".to_owned())
}

fn letter_value(record: &LetterRecord) -> Value {
    let row = &record.row;
    json!({
        "letter_id": row.letter_id,
        "kind": row.kind,
        "job_id": row.job_id,
        "model": row.model,
        "state": row.state.as_str(),
        "reason": row.reason.as_str(),
        "disposition": row.disposition.as_str(),
        "class": row.class,
        "code": row.code,
        "error_class": row.error_class,
        "error_type": row.error_type,
        "error_message": row.error_message,
        "attempts": row.attempts,
        "parkings": row.parkings,
        "replays": row.replays,
        "crashes": row.crashes,
        "max_replays": row.max_replays,
        "max_crashes": row.max_crashes,
        "fence": row.fence,
        "not_before": row.not_before.map(to_millis),
        "replay_after": row.replay_after.map(to_millis),
        "first_seen": to_millis(row.first_seen),
        "last_seen": to_millis(row.last_seen),
        "closed_at": row.closed_at.map(to_millis),
        "closed_by": row.closed_by,
        "closed_reason": row.closed_reason,
        "payload_revision": row.payload_revision,
        "payload_error": row.payload_error,
        "payload_altered": row.payload_altered,
        "sequence_key": row.sequence_key,
        "revisions": record.revisions.iter().map(revision_value).collect::<Vec<_>>(),
        "history": record.history.iter().map(entry_value).collect::<Vec<_>>(),
        "history_cut": record.history_cut,
        "history_cut_at": record.history_cut_at,
        "parked": record.parkings.iter().map(parking_value).collect::<Vec<_>>(),
        "events": record.events.iter().map(event_value).collect::<Vec<_>>(),
    })
}

fn revision_value(revision: &Revision) -> Value {
    let (payload, unreadable) = match &revision.payload {
        Payload::Json(text) => (Some(text), None),
        Payload::Unserializable(why) => (None, Some(why.as_str())),
        Payload::None => (None, Some("it was not there")),
    };
    json!({
        "source": revision.source.as_str(),
        "actor": revision.actor,
        "reason": revision.reason,
        "at": to_millis(revision.at),
        "payload": payload,
        "unreadable": unreadable,
    })
}

fn entry_value(entry: &HistoryEntry) -> Value {
    json!({
        "park_id": entry.park_id.map(|id| id.to_string()),
        "fence": entry.fence,
        "outcome": entry.outcome.as_str(),
        "late": entry.late,
        "attempt": entry.attempt,
        "at": to_millis(entry.at),
        "took_us": u64::try_from(entry.took.as_micros()).unwrap_or(u64::MAX),
        "class": entry.class,
        "code": entry.code,
        "message": entry.message,
        "wait_us": entry.wait.map(|wait| u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)),
    })
}

fn parking_value(parking: &ParkingRecord) -> Value {
    json!({
        "park_id": parking.park_id.to_string(),
        "reason": parking.reason.as_str(),
        "attempts": parking.attempts,
        "failed_at": to_millis(parking.failed_at),
    })
}

fn event_value(event: &EventRecord) -> Value {
    json!({
        "at": to_millis(event.at),
        "what": event.what,
        "actor": event.actor,
        "reason": event.reason,
        "operation": event.operation,
        "before": event.before.map(LetterState::as_str),
        "after": event.after.map(LetterState::as_str),
        "detail": event.detail,
    })
}

fn letter_of(fields: &Fields<'_>) -> Result<LetterRecord, String> {
    let mut row = LetterRow::new(fields.needed("letter_id")?, fields.needed("kind")?, fields.needed("job_id")?);
    row.model = fields.text("model")?;
    row.state = fields.word("state", LetterState::parse)?;
    row.reason = fields.word("reason", StopReason::parse)?;
    row.disposition = fields.word("disposition", Disposition::parse)?;
    row.class = fields.text("class")?;
    row.code = fields.number("code")?;
    row.error_class = fields.needed("error_class")?;
    row.error_type = fields.text("error_type")?.unwrap_or_default();
    row.error_message = fields.text("error_message")?.unwrap_or_default();
    row.attempts = fields.number("attempts")?.unwrap_or(0);
    row.parkings = fields.number("parkings")?.unwrap_or(1).max(1);
    row.replays = fields.number("replays")?.unwrap_or(0);
    row.crashes = fields.number("crashes")?.unwrap_or(0);
    row.max_replays = fields.number("max_replays")?.unwrap_or(row.max_replays);
    row.max_crashes = fields.number("max_crashes")?.unwrap_or(row.max_crashes);
    row.fence = fields.number("fence")?.unwrap_or(0);
    row.not_before = fields.time("not_before")?;
    row.replay_after = fields.time("replay_after")?;
    row.last_seen = fields.time("last_seen")?.ok_or("it has no `last_seen`")?;
    row.first_seen = fields.time("first_seen")?.unwrap_or(row.last_seen);
    row.closed_at = fields.time("closed_at")?;
    row.closed_by = fields.text("closed_by")?;
    row.closed_reason = fields.text("closed_reason")?;
    row.payload_revision = fields.number("payload_revision")?.unwrap_or(0);
    row.payload_error = fields.text("payload_error")?;
    row.payload_altered = fields.flag("payload_altered");
    row.sequence_key = fields.text("sequence_key")?;
    // Derived, by this program's own rules.
    row.fingerprint = fingerprint(&row.kind, row.class.as_deref(), &row.error_type, &row.error_message);
    let mut record = LetterRecord::new(row);
    for (n, fields) in fields.list("revisions")?.into_iter().enumerate() {
        record.revisions.push(revision_of(u32::try_from(n + 1).unwrap_or(u32::MAX), &fields)?);
    }
    let current = record.row.payload_revision.checked_sub(1).and_then(|at| record.revisions.get(at as usize));
    record.row.payload_size = current.map(|revision| revision.size);
    record.history = fields.list("history")?.iter().map(entry_of).collect::<Result<_, _>>()?;
    record.history_cut = fields.number("history_cut")?.unwrap_or(0);
    record.history_cut_at = fields.number("history_cut_at")?.unwrap_or(0);
    record.parkings = fields.list("parked")?.iter().map(parking_of).collect::<Result<_, _>>()?;
    record.events = fields.list("events")?.iter().map(event_of).collect::<Result<_, _>>()?;
    if record.parkings.is_empty() {
        return Err("it has no parking `parked`: it could be imported again and again".to_owned());
    }
    record.check()?;
    Ok(record)
}

fn revision_of(number: u32, fields: &Fields<'_>) -> Result<Revision, String> {
    let source = fields.word("source", RevisionSource::parse)?;
    let at = fields.time("at")?.unwrap_or(SystemTime::UNIX_EPOCH);
    let Some(json) = fields.text("payload")? else {
        let why = fields.text("unreadable")?.unwrap_or_default();
        return Err(format!("its payload revision {number} could not be read when it was exported: {why}"));
    };
    let mut revision = Revision::new(number, source, at, json);
    revision.actor = fields.text("actor")?;
    revision.reason = fields.text("reason")?;
    Ok(revision)
}

fn entry_of(fields: &Fields<'_>) -> Result<HistoryEntry, String> {
    let outcome = fields.word("outcome", AttemptOutcome::parse)?;
    let at = fields.time("at")?.unwrap_or(SystemTime::UNIX_EPOCH);
    let mut entry = HistoryEntry::bare(0, outcome, at, fields.text("message")?.unwrap_or_default());
    entry.park_id = fields.text("park_id")?.as_deref().and_then(Id::parse);
    entry.fence = fields.number("fence")?;
    entry.late = fields.flag("late");
    entry.attempt = fields.number("attempt")?.unwrap_or(0);
    entry.took = Duration::from_micros(fields.number("took_us")?.unwrap_or(0));
    entry.class = fields.text("class")?;
    entry.code = fields.number("code")?;
    entry.wait = fields.number("wait_us")?.map(Duration::from_micros);
    Ok(entry)
}

fn parking_of(fields: &Fields<'_>) -> Result<ParkingRecord, String> {
    let park_id = Id::parse(&fields.needed("park_id")?).ok_or("a `park_id` is no id")?;
    let failed_at = fields.time("failed_at")?.unwrap_or(SystemTime::UNIX_EPOCH);
    let reason = fields.word("reason", StopReason::parse)?;
    Ok(ParkingRecord::new(park_id, reason, fields.number("attempts")?.unwrap_or(0), failed_at))
}

fn event_of(fields: &Fields<'_>) -> Result<EventRecord, String> {
    let at = fields.time("at")?.unwrap_or(SystemTime::UNIX_EPOCH);
    let mut event = EventRecord::new(0, at, fields.needed("what")?);
    event.actor = fields.text("actor")?;
    event.reason = fields.text("reason")?;
    event.operation = fields.text("operation")?;
    event.before = fields.text("before")?.as_deref().and_then(LetterState::parse);
    event.after = fields.text("after")?.as_deref().and_then(LetterState::parse);
    event.detail = fields.text("detail")?.unwrap_or_default();
    Ok(event)
}

/// The fields of an object, asked for by name.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`{key}` is no text")),
        }
    }

    fn needed(&self, key: &str) -> Result<String, String> {
        self.text(key)?.ok_or_else(|| format!("it has no `{key}`"))
    }

    fn word<T>(&self, key: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        let word = self.needed(key)?;
        parse(&word).ok_or_else(|| format!("`{key}` is `{word}`, which is not known here"))
    }

    fn number<T: TryFrom<i128>>(&self, key: &str) -> Result<Option<T>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.map(Some).ok_or_else(|| format!("`{key}` is {value}, which is out of range or no whole number"))
    }

    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    fn time(&self, key: &str) -> Result<Option<SystemTime>, String> {
        Ok(self.number(key)?.map(from_millis))
    }

    fn list(&self, key: &str) -> Result<Vec<Fields<'a>>, String> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| format!("`{key}` is no list"))?;
        list.iter()
            .map(|one| one.as_object().map(Fields).ok_or_else(|| format!("`{key}` has what is no object")))
            .collect()
    }
}
