//! What happened, and who did it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use retry_runtime::dead_letter::{DeadLetterStore as _, EventQuery, EventRecord, Overview as _};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html};
use super::super::params::{Asked, address};
use super::super::shown;
use super::{Chrome, When, jobs};
use crate::status::is_by_hand;
use crate::times;

/// One event, as it is shown.
pub(super) struct Row {
    pub(super) machine: String,
    pub(super) moment: String,
    pub(super) ago: String,
    pub(super) what: String,
    pub(super) letter: String,
    pub(super) job: String,
    pub(super) operation: String,
    pub(super) states: String,
    pub(super) who: String,
    pub(super) why: String,
}

/// Events, with the jobs of their letters where they are known.
pub(super) fn rows(events: &[EventRecord], jobs: &BTreeMap<String, String>, now: SystemTime) -> Vec<Row> {
    events.iter().map(|event| row(event, jobs, now)).collect()
}

fn row(event: &EventRecord, jobs: &BTreeMap<String, String>, now: SystemTime) -> Row {
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
        job: event.letter_id.as_ref().map(|id| jobs.get(id).unwrap_or(id).clone()).unwrap_or_default(),
        letter: event.letter_id.clone().unwrap_or_default(),
        operation: event.operation.clone().unwrap_or_default(),
        states,
        who: shown::line(event.actor.as_deref().unwrap_or_default(), 200),
        why: shown::line(&why, 600),
    }
}

/// Events a page.
const LIMIT: usize = 50;

/// So many events are looked at for one page, and so many at once.
const LOOK_AT: usize = 5_000;
const AT_ONCE: u32 = 500;

#[derive(Template)]
#[template(path = "audit.html")]
struct Page {
    chrome: Chrome,
    by_hand: bool,
    letter: String,
    actor: String,
    since: String,
    is_filtered: bool,
    error: String,
    events: Vec<Row>,
    next: String,
    looked: String,
}

/// Which events are meant.
struct Meant {
    query: EventQuery,
    by_hand: bool,
    /// In lower case.
    actor: String,
    since: Option<SystemTime>,
}

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let (letter, actor, since) = (asked.get("letter").trim(), asked.get("actor").trim(), asked.get("since").trim());
    let (by_hand, now) = (asked.get("by") == "hand", app.now());
    let mut page = Page {
        chrome: Chrome::new(&app, &visitor, "Audit", "Audit"),
        by_hand,
        letter: shown::line(letter, 1_000),
        actor: shown::line(actor, 200),
        since: shown::line(since, 40),
        is_filtered: by_hand || !letter.is_empty() || !actor.is_empty() || !since.is_empty(),
        error: String::new(),
        events: Vec::new(),
        next: String::new(),
        looked: String::new(),
    };
    let after = match asked.get("after") {
        "" => None,
        text => Some(text.parse().map_err(|_| Failure::bad("`after` is no place in the audit"))?),
    };
    let meant = match (of(&app, letter).await?, moment(since, now)) {
        (Ok(query), Ok(since)) => Meant { query: query.after(after), by_hand, actor: actor.to_lowercase(), since },
        (Err(why), _) | (_, Err(why)) => {
            page.error = shown::line(&why, 600);
            let mut response = html(&page);
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return Ok(response);
        }
    };
    let (events, next, back_to) = find(&app, meant).await?;
    if let Some(next) = next {
        let by = if by_hand { "hand" } else { "" };
        let fields = [("by", by), ("letter", letter), ("actor", actor), ("since", since), ("after", &next.to_string())];
        page.next = address(&app.path("/audit"), &fields);
    }
    if let Some(at) = back_to {
        page.looked = format!("looked back to {}: much was written since", shown::moment(at));
    }
    let jobs = jobs(&app, events.iter().filter_map(|event| event.letter_id.as_ref())).await;
    page.events = rows(&events, &jobs, now);
    Ok(html(&page))
}

fn moment(since: &str, now: SystemTime) -> Result<Option<SystemTime>, String> {
    if since.is_empty() { Ok(None) } else { times::moment(since, now).map(Some) }
}

/// The events of the one letter that a text means; of all, where it is empty.
async fn of(app: &App, letter: &str) -> Result<Result<EventQuery, String>, Failure> {
    if letter.is_empty() {
        return Ok(Ok(EventQuery::all()));
    }
    let mut found = app.store.find(letter.to_owned(), 2).await?;
    Ok(match (found.pop(), found.pop()) {
        (Some(row), None) => Ok(EventQuery::letter(row.letter_id)),
        (None, _) => Err(format!("no letter or job begins with `{letter}`")),
        _ => Err(format!("`{letter}` means several letters: take the id of one")),
    })
}

/// A page of them, the place behind it, and back to when was looked where there were too many others.
async fn find(app: &App, meant: Meant) -> Result<(Vec<EventRecord>, Option<u64>, Option<SystemTime>), Failure> {
    let Meant { mut query, by_hand, actor, since } = meant;
    let is_plain = !by_hand && actor.is_empty();
    query.limit = if is_plain { u32::try_from(LIMIT).unwrap_or(u32::MAX) } else { AT_ONCE };
    let (mut events, mut looked) = (Vec::new(), 0);
    loop {
        let page = app.store.events(query.clone()).await?;
        for event in page.events {
            if since.is_some_and(|since| event.at < since) {
                return Ok((events, None, None));
            }
            if events.len() >= LIMIT {
                return Ok((events, query.after, None));
            }
            let by = event.actor.as_deref().unwrap_or_default();
            looked += 1;
            query.after = Some(event.id);
            let at = event.at;
            if (!by_hand || is_by_hand(&event)) && (actor.is_empty() || by.to_lowercase().contains(&actor)) {
                events.push(event);
            }
            if looked >= LOOK_AT {
                return Ok((events, query.after, Some(at)));
            }
        }
        query.after = page.next;
        if query.after.is_none() || events.len() >= LIMIT {
            return Ok((events, query.after, None));
        }
    }
}
