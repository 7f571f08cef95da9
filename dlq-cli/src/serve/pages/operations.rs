//! Bulk operations: how they stand, and who may stop them.

use std::sync::Arc;
use std::time::SystemTime;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Response;
use retry_runtime::dead_letter::{
    BulkOperations as _, DeadLetterStore as _, EventQuery, ItemOutcome, Operation, OperationStatus, Steer, Verb,
};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html};
use super::super::guard::{self, redirect};
use super::super::identity::Role;
use super::super::params::{Asked, address};
use super::super::shown;
use super::audit::{Row as Event, rows};
use super::{Chrome, actions};
use crate::filters;

/// One operation, as it is shown.
pub(super) struct Card {
    pub(super) id: String,
    pub(super) verb: &'static str,
    pub(super) total: String,
    pub(super) status: &'static str,
    pub(super) said: String,
    pub(super) done: u64,
    pub(super) max: u64,
    pub(super) counts: String,
    pub(super) note: String,
    pub(super) scope: String,
    pub(super) by: String,
    pub(super) age: String,
    pub(super) runner: String,
    pub(super) steers: Vec<(&'static str, &'static str, &'static str)>,
}

pub(super) fn card(app: &App, op: &Operation, now: SystemTime) -> Card {
    let total = op.counts.total();
    let open = op.counts.pending() + op.counts.running() + op.counts.waiting();
    let waits = waits_for_worker(app, op);
    let said = match op.status {
        OperationStatus::Pending if waits => "waiting for a worker".to_owned(),
        OperationStatus::Running if op.lease_until.is_some_and(|end| end < now) => {
            "its runner is gone: the next one takes it".to_owned()
        }
        status => status.to_string(),
    };
    let mut steers = Vec::new();
    if matches!(op.status, OperationStatus::Pending | OperationStatus::Running) {
        steers.push(("pause", "Stop here", ""));
    }
    if matches!(op.status, OperationStatus::Paused | OperationStatus::Failed) {
        steers.push(("resume", "Go on", "do"));
    }
    if !op.status.is_over() {
        steers.push(("cancel", "Cancel the rest", "undo"));
    }
    let written = filters::written(&op.filter);
    let reason = if op.actor.reason.is_empty() { String::new() } else { format!(": {}", op.actor.reason) };
    Card {
        id: op.id.clone(),
        verb: op.verb.as_str(),
        total: shown::count(total, "letter", "letters"),
        status: op.status.as_str(),
        said,
        done: total - open,
        max: total.max(1),
        counts: op.counts.to_string(),
        note: op.note.as_ref().map(|note| shown::line(note, 600)).unwrap_or_default(),
        scope: if written.is_empty() { "all letters".to_owned() } else { shown::line(&written, 300) },
        by: shown::line(&format!("{}{reason}", op.actor.name), 400),
        age: shown::ago(op.created_at, now),
        runner: op.runner.as_ref().map(|runner| shown::line(runner, 200)).unwrap_or_default(),
        steers,
    }
}

/// Nobody here runs it.
fn waits_for_worker(app: &App, op: &Operation) -> bool {
    op.status == OperationStatus::Pending && op.verb == Verb::Replay && !app.means.are_own()
}

#[derive(Template)]
#[template(path = "operations.html")]
struct List {
    chrome: Chrome,
    operations: Vec<Card>,
    next: String,
}

/// Operations a page.
const LIMIT: usize = 20;

pub(in super::super) async fn list(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let after = Some(asked.get("after").to_owned()).filter(|after| !after.is_empty());
    let mut found = app.store.operations(after, u32::try_from(LIMIT + 1).unwrap_or(u32::MAX)).await?;
    let more = found.len() > LIMIT;
    found.truncate(LIMIT);
    let last = found.last().filter(|_| more).map(|op| address(&app.path("/operations"), &[("after", &op.id)]));
    let now = app.now();
    Ok(html(&List {
        chrome: Chrome::new(&app, &visitor, "Operations", "Operations").said(asked.get("said")).live(),
        operations: found.iter().map(|op| card(&app, op, now)).collect(),
        next: last.unwrap_or_default(),
    }))
}

struct Item {
    letter: String,
    outcome: String,
    detail: String,
    ago: String,
}

#[derive(Template)]
#[template(path = "operation.html")]
struct One {
    chrome: Chrome,
    op: Card,
    waits: bool,
    outcomes: Vec<(String, String, bool)>,
    items: Vec<Item>,
    next: String,
    events: Vec<Event>,
}

pub(in super::super) async fn one(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let op = app.store.operation(id.clone()).await?.ok_or_else(|| Failure::missing("such operation"))?;
    let outcome = ItemOutcome::parse(asked.get("outcome"));
    let after = match asked.get("after") {
        "" => None,
        text => Some(text.parse().map_err(|_| Failure::bad("`after` is no place among the members"))?),
    };
    let found = app.store.items(id.clone(), outcome, after, 50).await?;
    let events = app.store.events(EventQuery::operation(id.clone()).limit(20)).await?.events;
    let (now, here) = (app.now(), app.path(&format!("/operations/{id}")));
    let word = outcome.map_or("", ItemOutcome::as_str);
    let mut outcomes = vec![("all".to_owned(), here.clone(), outcome.is_none())];
    outcomes.extend(op.counts.iter().map(|(of, n)| {
        let said = format!("{} {}", shown::number(n), of.as_str().replace('_', " "));
        (said, address(&here, &[("outcome", of.as_str())]), outcome == Some(of))
    }));
    let items = found.items.iter().map(|item| Item {
        letter: item.letter_id.clone().unwrap_or_default(),
        outcome: item.outcome.as_str().replace('_', " "),
        detail: item.detail.as_ref().map(|detail| shown::line(detail, 300)).unwrap_or_default(),
        ago: item.at.map(|at| shown::ago(at, now)).unwrap_or_default(),
    });
    let next = found.next.map(|next| address(&here, &[("outcome", word), ("after", &next.to_string())]));
    Ok(html(&One {
        chrome: Chrome::new(&app, &visitor, "Operations", format!("{} {}", op.verb, op.status))
            .said(asked.get("said"))
            .live(),
        waits: waits_for_worker(&app, &op),
        op: card(&app, &op, now),
        outcomes,
        items: items.collect(),
        next: next.unwrap_or_default(),
        events: rows(&events, now),
    }))
}

/// Pauses, resumes or cancels.
pub(in super::super) async fn steer(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path((id, verb)): Path<(String, String)>,
) -> Result<Response<Body>, Failure> {
    let steer = match verb.as_str() {
        "pause" => Steer::Pause,
        "resume" => Steer::Resume,
        "cancel" => Steer::Cancel,
        _ => return Err(Failure::missing("such page")),
    };
    guard::require(&app, &visitor, Role::Operator, None, &format!("{} operation {id}", steer.as_str())).await?;
    let op = app.store.steer(id.clone(), steer, visitor.actor("")).await?;
    if steer == Steer::Resume {
        actions::run(&app, &op);
    }
    app.facts.stale();
    app.live.changed();
    Ok(redirect(&address(&app.path(&format!("/operations/{id}")), &[("said", steer.as_str())])))
}
