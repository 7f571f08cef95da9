//! One line of a spill file, to text and back.
//!
//! `{"v":1,"park_id":"..","crc":"1a2b3c4d","scope":"..","letter":{..}}`: the checksum is over the whole line without its end, with
//! `00000000` in the checksum's place, so that it can be checked without knowing how JSON is written. Times are whole
//! milliseconds since the epoch, durations whole nanoseconds. The payload is a JSON string, so that its bytes stay as they
//! are. What is absent or null has its default.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use super::crc::crc32;
use crate::attempt::AttemptRecord;
use crate::dead_letter::{DeadLetter, Payload, from_millis, to_millis};
use crate::id::Id;
use crate::stop::StopReason;
use crate::verdict::Disposition;

/// The version this program writes, and the newest it reads.
pub(super) const VERSION: u64 = 1;

const CRC_KEY: &str = "\"crc\":\"";
const NO_CRC: &str = "00000000";

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// A letter, and the scope of the store that spilled it.
    Letter(Box<DeadLetter>, Option<String>),
    /// So many letters were lost before.
    Lost(u64),
}

/// Why a line cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadLine {
    /// Torn, altered, or never a line.
    Broken(String),
    /// Of a later version of this program.
    Newer(u64),
}

/// The line of a letter, with its end.
pub(super) fn letter(letter: &DeadLetter, scope: Option<&str>) -> String {
    let head = format!("{{\"v\":{VERSION},\"park_id\":\"{}\",", letter.park_id);
    let scope = scope.map_or_else(String::new, |scope| format!(",\"scope\":{}", Value::from(scope)));
    sealed(&head, &format!("\"{scope},\"letter\":{}}}", letter_value(letter)))
}

/// The line of a number of losses, with its end.
pub(super) fn lost(n: u64) -> String {
    sealed(&format!("{{\"v\":{VERSION},"), &format!("\",\"lost\":{n}}}"))
}

fn sealed(head: &str, tail: &str) -> String {
    format!("{head}{CRC_KEY}{:08x}{tail}\n", checksum(head, tail))
}

fn checksum(head: &str, tail: &str) -> u32 {
    crc32(&[head.as_bytes(), CRC_KEY.as_bytes(), NO_CRC.as_bytes(), tail.as_bytes()])
}

/// What a line without its end says.
pub(super) fn parse(line: &[u8]) -> Result<Line, BadLine> {
    let text = std::str::from_utf8(line).map_err(|_| broken("not UTF-8"))?;
    let value: Value = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
    let version = value.get("v").and_then(Value::as_u64).ok_or_else(|| broken("no version"))?;
    // A version that was damaged is none, and must not keep the rest of its file from coming home. A later one may seal its
    // lines in another way.
    if version > VERSION && !text.contains(CRC_KEY) {
        return Err(BadLine::Newer(version));
    }
    check(text)?;
    if version > VERSION {
        return Err(BadLine::Newer(version));
    }
    if let Some(n) = value.get("lost") {
        return n.as_u64().map(Line::Lost).ok_or_else(|| broken("`lost` is no number"));
    }
    let park_id = value.get("park_id").and_then(Value::as_str).and_then(Id::parse);
    let park_id = park_id.ok_or_else(|| broken("no `park_id`"))?;
    let fields = value.get("letter").and_then(Value::as_object).ok_or_else(|| broken("no `letter`"))?;
    let scope = value.as_object().map_or(Ok(None), |line| self::text(line, "scope"))?;
    Ok(Line::Letter(Box::new(letter_of(park_id, fields)?), scope))
}

fn check(text: &str) -> Result<(), BadLine> {
    let (head, rest) = text.split_once(CRC_KEY).ok_or_else(|| broken("no `crc`"))?;
    let (crc, tail) = rest.split_at_checked(NO_CRC.len()).ok_or_else(|| broken("no `crc`"))?;
    let stated = u32::from_str_radix(crc, 16).map_err(|_| broken("`crc` is no number"))?;
    if checksum(head, tail) == stated { Ok(()) } else { Err(broken("the checksum does not match")) }
}

fn broken(what: impl Into<String>) -> BadLine {
    BadLine::Broken(what.into())
}

fn letter_value(letter: &DeadLetter) -> Value {
    let payload = match &letter.payload {
        Payload::None => Value::Null,
        Payload::Json(text) => json!({ "encoding": "json", "text": text }),
        Payload::Unserializable(why) => json!({ "encoding": "unserializable", "text": why }),
    };
    let mut value = json!({
        "kind": letter.kind,
        "job_id": letter.job_id,
        "model": letter.model,
        "payload": payload,
        "reason": letter.reason.as_str(),
        "disposition": letter.disposition.as_str(),
        "class": letter.class,
        "code": letter.code,
        "error_type": letter.error_type,
        "error_message": letter.error_message,
        "attempts": letter.attempts,
        "first_failed_at": to_millis(letter.first_failed_at),
        "failed_at": to_millis(letter.failed_at),
        "not_before": letter.not_before.map(to_millis),
        "history": letter.history.iter().map(record_value).collect::<Vec<_>>(),
    });
    // Rare, and unknown to the first programs that read version 1.
    if let (true, Some(fields)) = (letter.payload_altered, value.as_object_mut()) {
        fields.insert("payload_altered".to_owned(), Value::Bool(true));
    }
    value
}

fn record_value(record: &AttemptRecord) -> Value {
    json!({
        "attempt": record.attempt,
        "at": to_millis(record.at),
        "took_ns": nanos(record.took),
        "class": record.class,
        "code": record.code,
        "message": record.message,
        "wait_ns": record.wait.map(nanos),
    })
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

type Fields = Map<String, Value>;

fn letter_of(park_id: Id, fields: &Fields) -> Result<DeadLetter, BadLine> {
    let kind = text(fields, "kind")?.ok_or_else(|| broken("no `kind`"))?;
    let reason = text(fields, "reason")?.and_then(|reason| StopReason::parse(&reason));
    let reason = reason.ok_or_else(|| broken("no known `reason`"))?;
    let failed_at = time(fields, "failed_at")?.ok_or_else(|| broken("no `failed_at`"))?;
    let mut letter = DeadLetter::new(kind, reason, failed_at);
    letter.park_id = park_id;
    letter.job_id = text(fields, "job_id")?;
    letter.model = text(fields, "model")?;
    letter.payload = payload_of(fields.get("payload"))?;
    letter.payload_altered = fields.get("payload_altered").and_then(Value::as_bool).unwrap_or(false);
    letter.disposition =
        text(fields, "disposition")?.and_then(|text| Disposition::parse(&text)).unwrap_or(Disposition::Unknown);
    letter.class = text(fields, "class")?;
    letter.code = number(fields, "code")?;
    letter.error_type = text(fields, "error_type")?.unwrap_or_default();
    letter.error_message = text(fields, "error_message")?.unwrap_or_default();
    letter.attempts = small(fields, "attempts")?;
    letter.first_failed_at = time(fields, "first_failed_at")?.unwrap_or(failed_at);
    letter.not_before = time(fields, "not_before")?;
    let history = fields.get("history").and_then(Value::as_array).into_iter().flatten();
    letter.history = history.map(record_of).collect::<Result<_, _>>()?;
    Ok(letter)
}

fn payload_of(value: Option<&Value>) -> Result<Payload, BadLine> {
    let Some(fields) = value.and_then(Value::as_object) else { return Ok(Payload::None) };
    let body = text(fields, "text")?.unwrap_or_default();
    match text(fields, "encoding")?.as_deref() {
        Some("json") => Ok(Payload::Json(body)),
        Some("unserializable") => Ok(Payload::Unserializable(body)),
        other => Err(broken(format!("payload encoding {other:?}, `json` or `unserializable` is accepted"))),
    }
}

fn record_of(value: &Value) -> Result<AttemptRecord, BadLine> {
    let fields = value.as_object().ok_or_else(|| broken("an attempt is no object"))?;
    let span = |key| fields.get(key).and_then(Value::as_u64).map(Duration::from_nanos);
    let at = time(fields, "at")?.unwrap_or(SystemTime::UNIX_EPOCH);
    let class = text(fields, "class")?.unwrap_or_default();
    let message = text(fields, "message")?.unwrap_or_default();
    let took = span("took_ns").unwrap_or_default();
    let mut record = AttemptRecord::new(small(fields, "attempt")?, at, took, class, number(fields, "code")?, &message);
    record.wait = span("wait_ns");
    Ok(record)
}

fn text(fields: &Fields, key: &str) -> Result<Option<String>, BadLine> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(broken(format!("`{key}` is no text"))),
    }
}

fn number(fields: &Fields, key: &str) -> Result<Option<i64>, BadLine> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| broken(format!("`{key}` is no whole number"))),
    }
}

fn small(fields: &Fields, key: &str) -> Result<u32, BadLine> {
    let n = number(fields, key)?.unwrap_or(0);
    u32::try_from(n).map_err(|_| broken(format!("`{key}` is {n}, 0 to {} is accepted", u32::MAX)))
}

fn time(fields: &Fields, key: &str) -> Result<Option<SystemTime>, BadLine> {
    Ok(number(fields, key)?.map(from_millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_letter() -> impl Strategy<Value = DeadLetter> {
        let text = || proptest::option::of(any::<String>());
        let time = || (-4_000_000_000_000..4_000_000_000_000_i64).prop_map(from_millis);
        let payload = prop_oneof![
            Just(Payload::None),
            any::<String>().prop_map(Payload::Json),
            any::<String>().prop_map(Payload::Unserializable),
        ];
        let record = (any::<u32>(), time(), any::<u64>(), any::<String>(), any::<Option<i64>>(), any::<Option<u64>>())
            .prop_map(|(attempt, at, took, text, code, wait)| {
                let took = Duration::from_nanos(took);
                let mut record = AttemptRecord::new(attempt, at, took, text.clone(), code, &text);
                record.wait = wait.map(Duration::from_nanos);
                record
            });
        let reason = (0..StopReason::ALL.len()).prop_filter_map("in range", |i| StopReason::ALL.get(i).copied());
        let errors = (any::<String>(), any::<String>(), any::<Option<i64>>(), text());
        let times = (time(), time(), proptest::option::of(time()));
        let names = (any::<String>(), text(), text());
        (names, payload, reason, errors, times, any::<u32>(), proptest::collection::vec(record, 0..4)).prop_map(
            |(names, payload, reason, errors, times, attempts, history)| {
                let mut letter = DeadLetter::new(names.0, reason, times.1);
                (letter.job_id, letter.model) = (names.1, names.2);
                letter.payload = payload;
                letter.payload_altered = attempts % 2 == 1;
                letter.disposition = Disposition::Gone;
                (letter.error_type, letter.error_message, letter.code, letter.class) = errors;
                (letter.first_failed_at, letter.not_before) = (times.0, times.2);
                letter.attempts = attempts;
                letter.history = history;
                letter
            },
        )
    }

    proptest! {
        // D8: what is spilled comes back.
        #[test]
        fn a_letter_comes_back_as_it_was(sent in any_letter(), scope in any::<Option<String>>()) {
            let line = letter(&sent, scope.as_deref());
            prop_assert!(line.ends_with('\n') && line.trim_end_matches('\n').find('\n').is_none());
            prop_assert_eq!(parse(line.trim_end().as_bytes()), Ok(Line::Letter(Box::new(sent), scope)));
        }

        // D8: a torn line is found, wherever it was torn.
        #[test]
        fn a_torn_line_is_broken(sent in any_letter(), at in any::<prop::sample::Index>()) {
            let line = letter(&sent, None);
            let line = line.trim_end().as_bytes();
            let torn = line.get(..at.index(line.len())).unwrap_or_default();
            prop_assert!(matches!(parse(torn), Err(BadLine::Broken(_))));
        }

        // D8: an altered byte is found.
        #[test]
        fn an_altered_line_is_broken(sent in any_letter(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let line = letter(&sent, None);
            let mut bytes = line.trim_end().as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let parsed = parse(&bytes);
            // Hexadecimal digits read the same in either case. A version that was altered is no later one.
            let same = matches!(&parsed, Ok(Line::Letter(read, None)) if **read == sent);
            prop_assert!(same || matches!(parsed, Err(BadLine::Broken(_))), "{:?}", parsed);
        }
    }

    #[test]
    fn the_form_of_version_1_never_changes() {
        let mut sent = DeadLetter::new("fetch", StopReason::Permanent, from_millis(1_000));
        sent.park_id = Id::parse("01234567-89ab-7cde-8f01-23456789abcd").unwrap_or(sent.park_id);
        sent.payload = Payload::Json("{\"a\":1}".into());
        sent.code = Some(403);
        let line = "{\"v\":1,\"park_id\":\"01234567-89ab-7cde-8f01-23456789abcd\",\"crc\":\"a0955b6f\",\"letter\":\
            {\"attempts\":0,\"class\":null,\"code\":403,\"disposition\":\"unknown\",\"error_message\":\"\",\"error_type\":\"\",\
            \"failed_at\":1000,\"first_failed_at\":1000,\"history\":[],\"job_id\":null,\"kind\":\"fetch\",\"model\":null,\
            \"not_before\":null,\"payload\":{\"encoding\":\"json\",\"text\":\"{\\\"a\\\":1}\"},\"reason\":\"permanent\"}}";
        assert_eq!(parse(line.as_bytes()), Ok(Line::Letter(Box::new(sent.clone()), None)));
        // Key order is the JSON library's own affair; the length is not.
        assert_eq!(letter(&sent, None).trim_end().len(), line.len());
    }

    #[test]
    fn losses_and_later_versions() {
        assert_eq!(parse(lost(7).trim_end().as_bytes()), Ok(Line::Lost(7)));
        assert_eq!(parse(b"{\"v\":2,\"anything\":true}"), Err(BadLine::Newer(2)));
        assert!(matches!(parse(b"{}"), Err(BadLine::Broken(_))));
        assert!(matches!(parse(b"\xFF"), Err(BadLine::Broken(_))));
    }
}
