//! One letter: what happened to it, why it failed, and what can be done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Response;
use retry_runtime::dead_letter::{
    DeadLetterStore as _, EventQuery, HistoryEntry, Incident, LetterDetail, LetterRow, LetterState, Payload, Revision,
};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html};
use super::super::identity::Role;
use super::super::params::Asked;
use super::super::{guard, payload, shown};
use super::audit::{Row as Event, rows};
use super::{Chrome, When, list_of, plan_of};
use crate::filters;

/// Attempts shown on the page: the first, and the last ones.
const ATTEMPTS: usize = 60;

/// What the audit calls a look at a payload.
const SHOWN: &str = "payload shown";

struct Attempt {
    of: String,
    number: u32,
    outcome: &'static str,
    when: When,
    took: String,
    class: String,
    message: String,
    wait: String,
    late: bool,
    /// What was left out in front of it.
    gap: String,
}

struct Version {
    number: u32,
    is_current: bool,
    source: &'static str,
    who: String,
    size: String,
    sha256: String,
    when: When,
}

/// The payload, as far as it was asked for.
enum Shown {
    Hidden,
    Text { text: String, cut: String },
}

#[derive(Template)]
#[template(path = "letter.html")]
#[allow(clippy::struct_excessive_bools, reason = "each is a part of the page that is there or not")]
struct Page {
    chrome: Chrome,
    id: String,
    job: String,
    job_to: String,
    kind: String,
    state: &'static str,
    headline: String,
    class: String,
    class_to: String,
    group_to: String,
    error_type: String,
    message: String,
    facts: Vec<(&'static str, String)>,
    timeline: Vec<Event>,
    attempts: Vec<Attempt>,
    attempts_said: String,
    has_payload: bool,
    payload_said: String,
    payload: Shown,
    may_edit: bool,
    versions: Vec<Version>,
    replay_to: String,
    replay_said: String,
    may_discard: bool,
    may_restore: bool,
    may_resolve: bool,
    may_release: bool,
}

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let detail = find(&app, id).await?;
    show(&app, &visitor, detail, Shown::Hidden, asked.get("said")).await
}

pub(super) async fn find(app: &App, id: String) -> Result<LetterDetail, Failure> {
    app.store.get(id).await?.ok_or_else(|| Failure::missing("such letter"))
}

/// Shows the payload, without its secrets, to whoever asks; that they did is written down before they see it.
pub(in super::super) async fn reveal(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response<Body>, Failure> {
    let detail = find(&app, id.clone()).await?;
    let said = format!("redacted, revision {}", detail.row.payload_revision);
    app.record(Incident::PayloadShown, Some(&id), said, visitor.actor("")).await;
    let text = match app.redactor.payload(&detail.payload) {
        Payload::Json(json) => payload::in_lines(&json),
        Payload::Unserializable(why) => why,
        _ => String::new(),
    };
    let cut = if text.len() > payload::SHOWN {
        format!("{} of it are shown, the beginning and the end.", shown::bytes(payload::SHOWN as u64))
    } else {
        String::new()
    };
    let text = Shown::Text { text: shown::text(&text, payload::SHOWN), cut };
    show(&app, &visitor, detail, text, "").await
}

async fn show(
    app: &App,
    visitor: &Visitor,
    detail: LetterDetail,
    payload: Shown,
    said: &str,
) -> Result<Response<Body>, Failure> {
    let (row, now) = (&detail.row, app.now());
    let events = app.store.events(EventQuery::letter(row.letter_id.clone()).oldest_first().limit(100)).await?.events;
    let revisions = if detail.revisions > 1 { app.store.revisions(row.letter_id.clone()).await? } else { Vec::new() };
    let (attempts, attempts_said) = attempts(&detail, now);
    let hands = matches!(row.state, LetterState::Parked | LetterState::Abandoned);
    let id_word = filters::word("id", &row.letter_id);
    let has_payload = row.payload_size.is_some() || row.payload_error.is_some();
    let small = row.payload_size.is_none_or(|size| size <= payload::EDITABLE as u64);
    let means = app.means.said();
    Ok(html(&Page {
        chrome: Chrome::new(app, visitor, "Letters", shown::line(&row.job_id, 80)).said(said),
        id: row.letter_id.clone(),
        job: shown::line(&row.job_id, 300),
        job_to: list_of(app, &filters::word("job", &row.job_id)),
        kind: shown::line(&row.kind, 300),
        state: row.state.as_str(),
        headline: headline(row, now),
        class: shown::line(&row.error_class, 200),
        class_to: list_of(app, &format!("owed {}", filters::word("error-class", &row.error_class))),
        group_to: list_of(app, &format!("owed {}", filters::word("group", &row.fingerprint))),
        error_type: shown::line(&row.error_type, 300),
        message: shown::text(&row.error_message, 4_000),
        facts: facts(row, now),
        timeline: merged(rows(&events, &BTreeMap::new(), now)),
        attempts,
        attempts_said,
        has_payload,
        payload_said: payload_said(&detail),
        payload,
        may_edit: row.state != LetterState::Replaying && small,
        versions: versions(&revisions, row),
        replay_to: plan_of(app, "replay", &id_word),
        replay_said: if row.state == LetterState::Parked {
            format!("Replay this letter {means}")
        } else {
            String::new()
        },
        may_discard: hands,
        may_resolve: hands,
        may_restore: row.state.is_closed(),
        may_release: row.state == LetterState::Replaying,
    }))
}

/// Looks at the payload, one after the other by the same person, are one line: an edit makes several.
fn merged(events: Vec<Event>) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::new();
    let mut times = 1;
    for event in events {
        match out.last_mut() {
            Some(last) if event.what == SHOWN && last.what.starts_with(SHOWN) && last.who == event.who => {
                times += 1;
                last.what = format!("{SHOWN} {times} times");
                if !last.why.contains(&event.why) {
                    last.why = format!("{}; {}", last.why, event.why);
                }
            }
            _ => {
                times = 1;
                out.push(event);
            }
        }
    }
    out
}

/// What is so, in a sentence.
fn headline(row: &LetterRow, now: SystemTime) -> String {
    let since = |at: Option<SystemTime>| at.map(|at| format!(" {}", shown::ago(at, now))).unwrap_or_default();
    let by = row.closed_by.as_ref().map(|by| format!(" by {}", shown::line(by, 100))).unwrap_or_default();
    let closed = row.closed_reason.as_deref().unwrap_or_default().replace('_', " ");
    match row.state {
        LetterState::Parked => match row.not_before.filter(|at| *at > now) {
            Some(at) => format!("Parked. A server asked not to try it before {}.", shown::moment(at)),
            None => "Parked: it waits for a replay.".to_owned(),
        },
        LetterState::Replaying => {
            let owner = row.owner.as_ref().map(|owner| shown::line(owner, 200)).unwrap_or_default();
            let lease = row.lease_until.map(|end| format!("; the lease ends {}", shown::ago(end, now)));
            format!("Being replayed by {owner}{}.", lease.unwrap_or_default())
        }
        LetterState::Abandoned => {
            format!(
                "Abandoned{}: {} replays failed and {} died. Nobody takes it until it is restored.",
                since(row.closed_at),
                row.replays,
                row.crashes
            )
        }
        LetterState::Recovered | LetterState::Discarded => {
            format!("{}{}{by}.", sentence(&closed), since(row.closed_at))
        }
        _ => row.state.to_string(),
    }
}

fn sentence(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

fn facts(row: &LetterRow, now: SystemTime) -> Vec<(&'static str, String)> {
    let when = |at: SystemTime| format!("{} ({})", shown::moment(at), shown::ago(at, now));
    let mut facts = vec![
        ("why it ended", row.reason.to_string()),
        ("verdict", row.disposition.to_string()),
        ("first failed", when(row.first_seen)),
        ("last failed", when(row.last_seen)),
        ("attempts ever", shown::number(row.attempts)),
        ("calls that parked it", shown::number(row.parkings)),
        ("replays", format!("{} of {}", row.replays, row.max_replays)),
        ("replays that died", format!("{} of {}", row.crashes, row.max_crashes)),
        ("scope", shown::line(&row.scope, 100)),
        ("idempotency key", row.idempotency_key()),
        ("fence", row.fence.to_string()),
    ];
    if let Some(model) = &row.model {
        facts.push(("label", shown::line(model, 300)));
    }
    if row.failed_again {
        facts.push((
            "failed again",
            "a live call failed while a replay ran: its success will not close the letter".to_owned(),
        ));
    }
    if let Some(at) = row.replay_after.filter(|at| *at > now) {
        facts.push(("workers wait until", when(at)));
    }
    facts
}

fn payload_said(detail: &LetterDetail) -> String {
    let row = &detail.row;
    let mut said = match row.payload_size {
        Some(size) => format!("{}, revision {} of {}", shown::bytes(size), row.payload_revision, detail.revisions),
        None => "The call named no payload".to_owned(),
    };
    if row.payload_altered {
        said.push_str("; altered by redaction when it was stored: a replay skips it until it is edited, or forced");
    }
    if let Some(why) = &row.payload_error {
        said.push_str("; the newest could not be serialised: ");
        said.push_str(&shown::line(why, 300));
    }
    said
}

fn versions(revisions: &[Revision], row: &LetterRow) -> Vec<Version> {
    let version = |revision: &Revision| {
        let actor = revision.actor.as_deref().unwrap_or_default();
        let reason = revision.reason.as_deref().filter(|reason| !reason.is_empty());
        Version {
            number: revision.revision,
            is_current: revision.revision == row.payload_revision,
            source: revision.source.as_str(),
            who: shown::line(&reason.map_or_else(|| actor.to_owned(), |reason| format!("{actor}: {reason}")), 400),
            size: shown::bytes(revision.size),
            sha256: revision.sha256.iter().take(6).fold(String::new(), |text, byte| format!("{text}{byte:02x}")),
            when: When { moment: shown::moment(revision.at), machine: shown::machine(revision.at), ago: String::new() },
        }
    };
    revisions.iter().rev().take(50).map(version).collect()
}

fn attempts(detail: &LetterDetail, now: SystemTime) -> (Vec<Attempt>, String) {
    let (all, cut_at) = (detail.history.len(), usize::try_from(detail.history_cut_at).unwrap_or(usize::MAX));
    let left_out = all.saturating_sub(ATTEMPTS);
    let half = ATTEMPTS / 2;
    let mut out = Vec::new();
    for (at, entry) in detail.history.iter().enumerate() {
        if left_out > 0 && at >= half && at < half + left_out {
            continue;
        }
        let mut gaps = Vec::new();
        if left_out > 0 && at == half + left_out {
            gaps.push(format!("{left_out} attempts are not shown here"));
        }
        if detail.history_cut > 0 && (at == cut_at || (at == half + left_out && (half..at).contains(&cut_at))) {
            gaps.push(format!("{} attempts were cut out of the history", detail.history_cut));
        }
        out.push(attempt(entry, now, gaps.join("; ")));
    }
    let ever = detail.row.attempts;
    (out, format!("{} recorded of {} ever made", shown::number(all as u64), shown::number(ever)))
}

fn attempt(entry: &HistoryEntry, now: SystemTime, gap: String) -> Attempt {
    let of = match entry.fence {
        Some(fence) => format!("replay, fence {fence}"),
        None => "live call".to_owned(),
    };
    let code = entry.code.map(|code| format!(" {code}")).unwrap_or_default();
    Attempt {
        of,
        number: entry.attempt,
        outcome: entry.outcome.as_str(),
        when: When::new(entry.at, now),
        took: shown::exact(entry.took),
        class: shown::line(&format!("{}{code}", entry.class.as_deref().unwrap_or_default()), 200),
        message: shown::text(&entry.message, 3_000),
        wait: entry.wait.map(|wait| format!("{} planned until the next", shown::exact(wait))).unwrap_or_default(),
        late: entry.late,
        gap,
    }
}

/// Whether somebody may change this letter; refused, and written down, where not.
pub(super) async fn may(app: &App, visitor: &Visitor, role: Role, id: &str, what: &str) -> Result<(), Failure> {
    guard::require(app, visitor, role, Some(id), what).await
}
