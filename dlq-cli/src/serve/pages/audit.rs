//! What happened, and who did it.

use std::sync::Arc;
use std::time::SystemTime;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use retry_runtime::dead_letter::{DeadLetterStore as _, EventQuery, EventRecord};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html};
use super::super::params::{Asked, address};
use super::super::shown;
use super::{Chrome, When};

/// One event, as it is shown.
pub(super) struct Row {
    pub(super) machine: String,
    pub(super) moment: String,
    pub(super) ago: String,
    pub(super) what: String,
    pub(super) letter: String,
    pub(super) operation: String,
    pub(super) states: String,
    pub(super) who: String,
    pub(super) why: String,
}

impl Row {
    /// The end of the letter's id, which tells it from others.
    pub(super) fn short(&self) -> String {
        let id = shown::line(&self.letter, 100);
        let from = id.char_indices().rev().nth(7).map_or(0, |(at, _)| at);
        format!("…{}", id.get(from..).unwrap_or_default())
    }
}

pub(super) fn rows(events: &[EventRecord], now: SystemTime) -> Vec<Row> {
    events.iter().map(|event| row(event, now)).collect()
}

fn row(event: &EventRecord, now: SystemTime) -> Row {
    let When { machine, moment, ago } = When::new(event.at, now);
    let states = match (event.before, event.after) {
        (Some(before), Some(after)) if before == after => String::new(),
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (None, Some(after)) if after.as_str() == event.what => String::new(),
        (None, Some(after)) => format!("→ {after}"),
        _ => String::new(),
    };
    let reason = event.reason.as_deref().unwrap_or_default();
    let why = [reason, &event.detail].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" · ");
    Row {
        machine,
        moment,
        ago,
        what: shown::line(&event.what.replace('_', " "), 100),
        letter: event.letter_id.clone().unwrap_or_default(),
        operation: event.operation.clone().unwrap_or_default(),
        states,
        who: shown::line(event.actor.as_deref().unwrap_or_default(), 200),
        why: shown::line(&why, 600),
    }
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Page {
    chrome: Chrome,
    events: Vec<Row>,
    next: String,
}

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let after = match asked.get("after") {
        "" => None,
        text => Some(text.parse().map_err(|_| Failure::bad("`after` is no place in the audit"))?),
    };
    let found = app.store.events(EventQuery::all().after(after)).await?;
    let next = found.next.map(|next| address(&app.path("/audit"), &[("after", &next.to_string())]));
    Ok(html(&Page {
        chrome: Chrome::new(&app, &visitor, "Audit", "Audit"),
        events: rows(&found.events, app.now()),
        next: next.unwrap_or_default(),
    }))
}
