//! `dlq show`.

use std::time::SystemTime;

use retry_runtime::dead_letter::{EventQuery, EventRecord, HistoryEntry, LetterDetail, Payload, Redactor, Revision};
use serde_json::json;

use super::context::{Context, print, print_json};
use super::list::class_before;
use super::table::{BOLD, bytes, counted, styled};
use crate::exit::{Exit, Failure};
use crate::filters::one;
use crate::stores::Access;
use crate::{documents, status, text, times};

/// Which letter.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// A letter's id, a job's id, or the beginning of either where it is unique
    #[arg(value_name = "ID")]
    id: String,
    /// The whole payload, however long, with its secrets
    #[arg(long)]
    raw: bool,
}

/// So much of a payload is shown where nothing is said.
const PAYLOAD_BYTES: usize = 8 << 10;
const PAYLOAD_LINES: usize = 60;
const ATTEMPTS: usize = 20;
const EVENTS: u32 = 20;

pub(super) async fn run(context: &Context, args: ShowArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let now = store.facts().await?.now;
    let id = one(&store, &args.id).await?;
    let detail = store.get(id.clone()).await?;
    let mut detail = detail.ok_or_else(|| Failure::failed(format!("letter {id} is gone")))?;
    if !args.raw {
        detail.payload = Redactor::standard().payload(&detail.payload);
    }
    let revisions = store.revisions(id.clone()).await?;
    let events = store.events(EventQuery::letter(id).limit(EVENTS)).await?.events;
    if context.json {
        print_json(&json!({
            "store": store.shown(),
            "letter": documents::letter(&detail.row),
            "payload": documents::payload(&detail.payload),
            "redacted": !args.raw,
            "attempts": detail.history.iter().map(documents::attempt).collect::<Vec<_>>(),
            "attempts_cut": detail.history_cut,
            "revisions": revisions.iter().map(documents::revision).collect::<Vec<_>>(),
            "events": events.iter().map(documents::event).collect::<Vec<_>>(),
        }))?;
    } else {
        print(&format!("store: {}\n{}", store.shown(), page(&detail, &revisions, &events, args.raw, now)))?;
    }
    Ok(Exit::DONE)
}

fn page(detail: &LetterDetail, revisions: &[Revision], events: &[EventRecord], raw: bool, now: SystemTime) -> String {
    let row = &detail.row;
    let mut lines: Vec<String> = Vec::new();
    let mut fact = |name: &str, value: String| lines.push(format!("{} {value}", styled(BOLD, &format!("{name:<10}"))));
    let when = |at: SystemTime| format!("{} ({})", times::full(at), times::ago(at, now));
    fact("letter", row.letter_id.clone());
    fact("job", format!("{}  of {}", text::line(&row.job_id), text::line(&row.kind)));
    if let Some(model) = &row.model {
        fact("model", text::line(model));
    }
    fact("status", row.state.to_string());
    if let (Some(by), Some(at)) = (&row.closed_by, row.closed_at) {
        let how = row.closed_reason.as_deref().unwrap_or_default();
        fact("closed", format!("{} by {} {}", text::line(how), text::line(by), when(at)));
    }
    if let (Some(owner), Some(until)) = (&row.owner, row.lease_until) {
        fact("replayed", format!("by {}, lease until {}", text::line(owner), when(until)));
    }
    fact(
        "error",
        format!(
            "{} ({}): {}",
            text::line(&row.error_class),
            row.disposition.as_str(),
            text::some_lines(&row.error_message, 4_096, 20)
        ),
    );
    if let Some(before) = class_before(row, &detail.history) {
        fact("was", format!("{} until a replay failed otherwise", text::line(&before)));
    }
    if !row.error_type.is_empty() {
        fact("type", text::line(&row.error_type));
    }
    fact("group", row.fingerprint.clone());
    fact(
        "counts",
        format!(
            "{}, {}, {} of {} replays used, {} died",
            counted(row.attempts, "attempt"),
            counted(row.parkings, "parking"),
            row.replays,
            row.max_replays,
            row.crashes
        ),
    );
    fact("first seen", when(row.first_seen));
    fact("last seen", when(row.last_seen));
    if let Some(at) = row.not_before {
        fact("not before", when(at));
    }
    fact("payload", payload(detail, raw));
    if revisions.len() > 1 {
        for revision in revisions {
            let by = revision.actor.as_deref().map(|by| format!(" by {}", text::line(by))).unwrap_or_default();
            let why = revision.reason.as_deref().map(|why| format!(": {}", text::line(why))).unwrap_or_default();
            fact(
                "",
                format!(
                    "revision {} ({}{by}, {}){why}",
                    revision.revision,
                    revision.source.as_str(),
                    times::full(revision.at)
                ),
            );
        }
    }
    let cut = detail.history_cut + detail.history.len().saturating_sub(ATTEMPTS) as u64;
    let mut name = "attempts";
    for entry in detail.history.iter().rev().take(ATTEMPTS) {
        fact(name, attempt(entry));
        name = "";
    }
    if cut > 0 {
        fact("", format!("and {cut} earlier ones"));
    }
    name = "audit";
    for event in events {
        fact(name, format!("{}  {}", times::full(event.at), status::act(event)));
        name = "";
    }
    lines.join("\n")
}

fn payload(detail: &LetterDetail, raw: bool) -> String {
    let row = &detail.row;
    let altered = if row.payload_altered {
        ", redacted by a rule when it was stored: replays skip it until it is edited"
    } else {
        ""
    };
    match &detail.payload {
        Payload::Json(json) => {
            let size = bytes(row.payload_size.unwrap_or(json.len() as u64));
            let hidden = if raw { "" } else { ", secrets hidden: --raw shows them" };
            let shown = if raw { text::lines(json) } else { text::some_lines(json, PAYLOAD_BYTES, PAYLOAD_LINES) };
            format!("revision {}, {size}{altered}{hidden}\n{shown}", row.payload_revision)
        }
        Payload::Unserializable(why) => format!("cannot be read: {}", text::line(why)),
        _ => "none".to_owned(),
    }
}

fn attempt(entry: &HistoryEntry) -> String {
    let by = match entry.fence {
        Some(fence) => format!("replay {fence}"),
        None => "call".to_owned(),
    };
    let late = if entry.late { ", late" } else { "" };
    let class = entry.class.as_deref().map(|class| format!(" {}", text::line(class))).unwrap_or_default();
    let code = entry.code.map(|code| format!(" {code}")).unwrap_or_default();
    let took = entry.took.as_millis();
    format!(
        "{}  {by} #{} {}{class}{code}{late} after {took} ms  {}",
        times::full(entry.at),
        entry.attempt,
        entry.outcome.as_str(),
        text::line(&entry.message)
    )
}
