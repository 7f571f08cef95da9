//! The documents of `--json`: see docs/dlq-json.md and its schema. Fields are added, never renamed or taken away.

use std::time::SystemTime;

use retry_runtime::dead_letter::{
    EventRecord, FailureGroup, Finding, HistoryEntry, LetterRow, LetterState, Operation, OperationItem, Payload, Plan,
    Revision, Summary,
};
use retry_runtime::ledger::LedgerEntry;
use serde_json::{Map, Value, json};

use crate::status::{Arriving, Status};
use crate::times;

/// A time, in UTC to the second.
pub fn time(at: SystemTime) -> Value {
    Value::from(times::full(at))
}

fn some_time(at: Option<SystemTime>) -> Value {
    at.map_or(Value::Null, time)
}

/// A letter without payload and history.
pub fn letter(row: &LetterRow) -> Value {
    json!({
        "letter_id": row.letter_id,
        "kind": row.kind,
        "job_id": row.job_id,
        "scope": row.scope,
        "model": row.model,
        "status": row.state.as_str(),
        "reason": row.reason.as_str(),
        "disposition": row.disposition.as_str(),
        "class": row.class,
        "code": row.code,
        "error_class": row.error_class,
        "error_type": row.error_type,
        "error_message": row.error_message,
        "group": row.fingerprint,
        "attempts": row.attempts,
        "parkings": row.parkings,
        "replays": row.replays,
        "max_replays": row.max_replays,
        "crashes": row.crashes,
        "first_seen": time(row.first_seen),
        "last_seen": time(row.last_seen),
        "not_before": some_time(row.not_before),
        "owner": row.owner,
        "lease_until": some_time(row.lease_until),
        "closed_at": some_time(row.closed_at),
        "closed_by": row.closed_by,
        "closed_reason": row.closed_reason,
        "payload_revision": row.payload_revision,
        "payload_size": row.payload_size,
        "payload_error": row.payload_error,
        "payload_altered": row.payload_altered,
        "fence": row.fence,
    })
}

/// A payload: as JSON where it is, else as text, else null.
pub fn payload(payload: &Payload) -> Value {
    match payload {
        Payload::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())),
        _ => Value::Null,
    }
}

/// One recorded attempt.
pub fn attempt(entry: &HistoryEntry) -> Value {
    json!({
        "at": time(entry.at),
        "attempt": entry.attempt,
        "by": if entry.fence.is_some() { "replay" } else { "call" },
        "fence": entry.fence,
        "outcome": entry.outcome.as_str(),
        "late": entry.late,
        "took_ms": millis(entry.took),
        "wait_ms": entry.wait.map(millis),
        "class": entry.class,
        "code": entry.code,
        "message": entry.message,
    })
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A revision of a payload, without the payload.
pub fn revision(revision: &Revision) -> Value {
    json!({
        "revision": revision.revision,
        "source": revision.source.as_str(),
        "actor": revision.actor,
        "reason": revision.reason,
        "size": revision.size,
        "at": time(revision.at),
    })
}

/// One thing that happened.
pub fn event(event: &EventRecord) -> Value {
    json!({
        "id": event.id,
        "at": time(event.at),
        "what": event.what,
        "letter_id": event.letter_id,
        "actor": event.actor,
        "reason": event.reason,
        "operation": event.operation,
        "before": event.before.map(LetterState::as_str),
        "after": event.after.map(LetterState::as_str),
        "detail": event.detail,
    })
}

/// A failure group.
pub fn group(group: &FailureGroup) -> Value {
    let states: Map<String, Value> =
        group.counts.states.iter().map(|(state, n)| (state.as_str().to_owned(), Value::from(*n))).collect();
    json!({
        "group": group.counts.fingerprint,
        "letters": group.counts.letters(),
        "by_status": states,
        "attempts": group.counts.attempts,
        "first_seen": time(group.counts.first_seen),
        "last_seen": time(group.counts.last_seen),
        "kind": group.newest.kind,
        "error_class": group.newest.error_class,
        "error_type": group.newest.error_type,
        "error_message": group.newest.error_message,
        "per_hour": group.trend.per_hour,
        "per_day": group.trend.per_day,
        "note": group.note.as_ref().map(|note| &note.text),
    })
}

/// A bulk operation.
pub fn operation(operation: &Operation) -> Value {
    let counts: Map<String, Value> =
        operation.counts.iter().map(|(outcome, n)| (outcome.as_str().to_owned(), Value::from(n))).collect();
    json!({
        "operation": operation.id,
        "verb": operation.verb.as_str(),
        "status": operation.status.as_str(),
        "note": operation.note,
        "actor": operation.actor.name,
        "reason": operation.actor.reason,
        "runner": operation.runner,
        "lease_until": some_time(operation.lease_until),
        "members": operation.counts.total(),
        "counts": counts,
        "created_at": time(operation.created_at),
        "updated_at": time(operation.updated_at),
        "finished_at": some_time(operation.finished_at),
        "filter": serde_json::from_str::<Value>(&operation.filter.to_json()).unwrap_or(Value::Null),
    })
}

/// A member of an operation.
pub fn item(item: &OperationItem) -> Value {
    json!({
        "letter_id": item.letter_id,
        "outcome": item.outcome.as_str(),
        "detail": item.detail,
        "at": some_time(item.at),
    })
}

/// What an operation would do.
pub fn plan(plan: &Plan) -> Value {
    let groups: Vec<Value> = plan
        .groups
        .iter()
        .map(|group| {
            json!({
                "prospect": format!("{:?}", group.prospect),
                "of": group.of,
                "letters": group.n,
                "earliest": some_time(group.earliest),
            })
        })
        .collect();
    json!({
        "verb": plan.verb.as_str(),
        "matching": plan.matched,
        "text": plan.to_string(),
        "groups": groups,
        "excluded": plan.excluded,
        "abandoned": plan.abandoned,
        "under_way": plan.under_way,
        "sample": plan.sample,
    })
}

/// What the doctor found.
pub fn finding(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity.as_str(),
        "code": finding.code,
        "subject": finding.subject,
        "message": finding.message,
        "advice": finding.advice,
    })
}

/// A key of the ledger.
pub fn ledger(entry: &LedgerEntry) -> Value {
    json!({
        "scope": entry.key.scope,
        "key": entry.key.key,
        "status": entry.status.as_str(),
        "attempts": entry.attempts,
        "next_at": some_time(entry.next_at),
        "first_seen": time(entry.first_seen),
        "last_seen": time(entry.last_seen),
    })
}

/// The summary.
pub fn summary(summary: &Summary) -> Value {
    json!({
        "parked": summary.total_parked(),
        "parked_by_error_class": summary.parked,
        "replaying": summary.replaying,
        "abandoned": summary.abandoned,
        "owed": summary.owed(),
        "spilled": summary.spilled,
        "orphaned": summary.orphaned,
        "set_aside": summary.set_aside,
        "clean": summary.is_clean(),
    })
}

/// The first page.
pub fn status(status: &Status) -> Value {
    let now = status.now();
    let new_groups: Vec<Value> = status
        .new_groups
        .iter()
        .map(|group| {
            json!({
                "group": group.group,
                "letters": group.letters,
                "first_seen": time(group.first_seen),
                "kind": group.newest.kind,
                "error_class": group.newest.error_class,
                "error_message": group.newest.error_message,
            })
        })
        .collect();
    let files: Vec<Value> = status
        .facts
        .files
        .iter()
        .map(|file| {
            json!({
                "role": file.role.as_str(),
                "path": file.path.to_string_lossy(),
                "bytes": file.bytes,
                "lines": file.lines,
                "held": file.held,
            })
        })
        .collect();
    let processes: Vec<Value> = status
        .facts
        .processes
        .iter()
        .map(|process| {
            json!({
                "name": process.name,
                "since": time(process.since),
                "seen_at": time(process.seen_at),
                "lease_until": time(process.lease_until),
            })
        })
        .collect();
    let writers: Vec<Value> =
        status.facts.writers.iter().map(|(name, n)| json!({ "writer": name, "letters": n })).collect();
    let arriving = match status.arrivals.arriving(now) {
        Arriving::Yes => "yes",
        Arriving::Slowing => "slowing",
        Arriving::No => "no",
    };
    json!({
        "at": time(now),
        "summary": summary(&status.summary),
        "longest_unseen": status.longest_unseen.as_ref().map(letter),
        "arrivals": {
            "arriving": arriving,
            "newest": some_time(status.arrivals.newest),
            "every_seconds": status.arrivals.every.map(|every| every.as_secs()),
            "per_hour": status.arrivals.per_hour,
            "day": status.arrivals.day,
            "day_before": status.arrivals.day_before,
            "last_hours": status.arrivals.last_hours,
            "same_hours": status.arrivals.same_hours,
        },
        "new_groups": new_groups,
        "under_way": status.under_way.iter().map(letter).collect::<Vec<_>>(),
        "operations": status.operations.iter().map(operation).collect::<Vec<_>>(),
        "next_due": some_time(status.facts.next_due),
        "recovered_in_a_day": status.facts.recovered_in_a_day,
        "discard": {
            "letters": status.discard.letters,
            "discarded": status.discard.discarded,
            "kept_seconds": status.discard.kept.map(|kept| kept.as_secs()),
        },
        "acts": status.acts.events.iter().map(event).collect::<Vec<_>>(),
        "acts_back_to": time(status.acts.back_to),
        "lost": status.lost,
        "processes": processes,
        "writers": writers,
        "files": files,
        "free_bytes": status.facts.free_bytes,
        "findings": status.health.iter().map(finding).collect::<Vec<_>>(),
    })
}
