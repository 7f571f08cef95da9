//! Bulk operations: how they stand, and who may stop them.

use std::sync::Arc;
use std::time::SystemTime;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use retry_runtime::dead_letter::{
    BulkOperations as _, DeadLetterStore as _, EventQuery, ItemOutcome, Operation, OperationStatus, Steer, Verb,
};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html};
use super::super::guard::{self, redirect};
use super::super::identity::Role;
use super::super::params::{Asked, address};
use super::super::{shown, svg};
use super::audit::{Row as Event, rows};
use super::{Chrome, actions, jobs};
use crate::filters;

/// One operation, as it is shown.
pub(super) struct Card {
    pub(super) id: String,
    pub(super) verb: &'static str,
    pub(super) total: String,
    pub(super) status: &'static str,
    pub(super) said: String,
    pub(super) bar: String,
    pub(super) counts: String,
    pub(super) note: String,
    pub(super) scope: String,
    pub(super) by: String,
    pub(super) age: String,
    pub(super) runner: String,
    pub(super) steers: Vec<(&'static str, &'static str, &'static str)>,
    pub(super) waits: bool,
    pub(super) can_run: bool,
    /// With its name, and a link to its page.
    pub(super) is_titled: bool,
}

pub(super) fn card(app: &App, op: &Operation, now: SystemTime) -> Card {
    let total = op.counts.total();
    let open = op.counts.pending() + op.counts.running() + op.counts.waiting();
    let of = |is: fn(ItemOutcome) -> bool| op.counts.iter().filter(|(of, _)| is(*of)).map(|(_, n)| n).sum::<u64>();
    let failed = of(ItemOutcome::is_failure);
    let waits = waits_for_worker(app, op);
    let is_left = op.status == OperationStatus::Running && op.lease_until.is_some_and(|end| end < now);
    let mut said = match op.status {
        _ if waits => "waits for a worker".to_owned(),
        OperationStatus::Pending => "waits to be run".to_owned(),
        OperationStatus::Running if is_left => "its runner is gone: the next one takes it".to_owned(),
        status => status.to_string(),
    };
    if op.status.is_over() && failed > 0 {
        // What an operator has to look at is no detail.
        let bad = op.counts.iter().filter(|(of, _)| of.is_failure());
        let bad: Vec<_> =
            bad.map(|(of, n)| format!("{} {}", shown::number(n), of.as_str().replace('_', " "))).collect();
        said = format!("{said}, {}", bad.join(", "));
    }
    let mut steers = Vec::new();
    if (op.status == OperationStatus::Pending || is_left) && can_run(app, op) {
        steers.push(("run", "Run it here", "do"));
    }
    if matches!(op.status, OperationStatus::Pending | OperationStatus::Running) {
        steers.push(("pause", "Pause", ""));
    }
    if matches!(op.status, OperationStatus::Paused | OperationStatus::Failed) {
        steers.push(("resume", "Resume", "do"));
    }
    if !op.status.is_over() {
        steers.push(("cancel", "Cancel the rest", "undo"));
    }
    let written = filters::written(&op.filter);
    let reason = if op.actor.reason.is_empty() { String::new() } else { format!(": {}", op.actor.reason) };
    let done = total - open;
    let of_all = format!(
        "{}: {} of {} ended, {} failed",
        op.verb,
        shown::number(done),
        shown::number(total),
        shown::number(failed)
    );
    Card {
        id: op.id.clone(),
        verb: op.verb.as_str(),
        total: shown::count(total, "letter", "letters"),
        status: if failed > 0 && op.status == OperationStatus::Done { "failed" } else { op.status.as_str() },
        said,
        bar: svg::progress(done.saturating_sub(failed), failed, total, &of_all),
        counts: op.counts.to_string(),
        note: op.note.as_ref().map(|note| shown::line(note, 600)).unwrap_or_default(),
        scope: if written.is_empty() { "all letters".to_owned() } else { shown::line(&written, 300) },
        by: shown::line(&format!("{}{reason}", op.actor.name), 400),
        age: shown::ago(op.created_at, now),
        runner: op.runner.as_ref().map(|runner| shown::line(runner, 200)).unwrap_or_default(),
        steers,
        waits,
        can_run: can_run(app, op),
        is_titled: true,
    }
}

/// Nobody is at it.
pub(super) fn waits_for_worker(_: &App, op: &Operation) -> bool {
    op.status == OperationStatus::Pending && op.verb == Verb::Replay
}

/// This process has the means to.
fn can_run(app: &App, op: &Operation) -> bool {
    op.verb != Verb::Replay || app.means.are_own()
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
    job: String,
    outcome: String,
    detail: String,
    ago: String,
}

#[derive(Template)]
#[template(path = "operation.html")]
struct One {
    chrome: Chrome,
    op: Card,
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
    let of_letters = found.items.iter().filter_map(|item| item.letter_id.as_ref());
    let jobs = jobs(&app, of_letters.chain(events.iter().filter_map(|event| event.letter_id.as_ref()))).await;
    let items = found.items.iter().map(|item| Item {
        job: item.letter_id.as_ref().map(|id| jobs.get(id).unwrap_or(id).clone()).unwrap_or_default(),
        letter: item.letter_id.clone().unwrap_or_default(),
        outcome: item.outcome.as_str().replace('_', " "),
        detail: item.detail.as_ref().map(|detail| shown::line(detail, 300)).unwrap_or_default(),
        ago: item.at.map(|at| shown::ago(at, now)).unwrap_or_default(),
    });
    let next = found.next.map(|next| address(&here, &[("outcome", word), ("after", &next.to_string())]));
    // That it was started is no news once it is over.
    let said = if op.status.is_over() && asked.get("said") != "cancel" { "" } else { asked.get("said") };
    let mut events = rows(&events, &jobs, now);
    for event in &mut events {
        // This page is it.
        event.operation.clear();
    }
    Ok(html(&One {
        chrome: Chrome::new(&app, &visitor, "Operations", format!("{} {}", op.verb, op.status)).said(said).live(),
        op: Card { is_titled: false, ..card(&app, &op, now) },
        outcomes,
        items: items.collect(),
        next: next.unwrap_or_default(),
        events,
    }))
}

/// Runs an operation that nobody is at: one that the command left to others, or whose runner is gone.
pub(in super::super) async fn run_here(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response<Body>, Failure> {
    guard::require(&app, &visitor, Role::Operator, None, &format!("run operation {id}")).await?;
    let op = app.store.operation(id.clone()).await?.ok_or_else(|| Failure::missing("such operation"))?;
    if !can_run(&app, &op) {
        return Err(Failure::bad(format!(
            "this dashboard has no means to: `dlq replay --resume {id} --exec COMMAND` has, and so has `dlq serve` with --exec or --http"
        )));
    }
    let is_left = op.status == OperationStatus::Running && op.lease_until.is_some_and(|end| end < app.now());
    if op.status != OperationStatus::Pending && !is_left {
        return Err(Failure::new(
            StatusCode::CONFLICT,
            format!("it is {}: only one that nobody runs can be run here", op.status),
        ));
    }
    actions::run(&app, &op);
    app.facts.stale();
    app.live.changed();
    Ok(redirect(&address(&app.path(&format!("/operations/{id}")), &[("said", "run")])))
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
        _ => return Err(Failure::no_page()),
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
