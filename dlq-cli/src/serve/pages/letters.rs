//! The list: a written filter, a selection, and pages as fast at any depth.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use retry_runtime::dead_letter::{
    Cursor, DeadLetterStore as _, Filter, LetterRow, LetterState, OperationRequest, Order, Overview as _, PageRequest,
    Verb,
};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html};
use super::super::params::{Asked, address};
use super::super::shown;
use super::{Chrome, When, filter_of, plan_of, words};
use crate::filters;

/// Letters a page.
const LIMIT: u32 = 50;

/// How many letters one page looks at where no index serves the filter.
const LOOK_AT: u64 = 20_000;

/// A number that is not there within this time is not waited for.
const COUNT_WITHIN: Duration = Duration::from_millis(120);

struct Row {
    id: String,
    job: String,
    kind: String,
    state: &'static str,
    class: String,
    message: String,
    attempts: String,
    machine: String,
    moment: String,
    ago: String,
}

#[derive(Template)]
#[template(path = "letters.html")]
struct Page {
    chrome: Chrome,
    q: String,
    words: String,
    error: String,
    /// Which letters these are, in words, and the way to the others.
    said: String,
    other: (&'static str, String),
    all: bool,
    shown: String,
    oldest: bool,
    order_to: String,
    incomplete: String,
    acts: Vec<(String, String, &'static str)>,
    rows: Vec<Row>,
    next: String,
}

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let (q, all, oldest, now) = (asked.get("q"), asked.has("all"), asked.get("order") == "oldest", app.now());
    let order = if oldest { Order::LongestUnseenFirst } else { Order::NewestFirst };
    let chrome = Chrome::new(&app, &visitor, "Letters", "Letters").said(asked.get("said")).live();
    let at = |all: bool, order: &str, after: &str| {
        let all = if all { "1" } else { "" };
        address(&app.path("/letters"), &[("q", q), ("all", all), ("order", order), ("after", after)])
    };
    let here = |order: &str, after: &str| at(all, order, after);
    let word = if oldest { "oldest" } else { "" };
    let mut page = Page {
        chrome,
        q: shown::line(q, 4_000),
        words: words(),
        error: String::new(),
        said: String::new(),
        other: ("", String::new()),
        all,
        shown: String::new(),
        oldest,
        order_to: here(if oldest { "" } else { "oldest" }, ""),
        incomplete: String::new(),
        acts: Vec::new(),
        rows: Vec::new(),
        next: String::new(),
    };
    let filter = match filter_of(q, now) {
        Ok(filter) => filter,
        Err(why) => {
            page.error = shown::line(&why, 600);
            let mut response = html(&page);
            *response.status_mut() = axum::http::StatusCode::BAD_REQUEST;
            return Ok(response);
        }
    };
    let after = place(asked.get("after"))?;
    let request = PageRequest::first(order, LIMIT).after(after).looking_at(LOOK_AT);
    let (mut filter, said) = begins(&app, filter).await?;
    page.said = said;
    if all {
        page.said = "All letters, closed ones too.".into();
        page.other = ("Only what is owed", at(false, word, ""));
    } else if filter.states.is_empty() && filter.ids.is_empty() {
        // As the command: nobody who was just woken asks for what is done.
        filter.states = Filter::owed().states;
        page.said = "What is owed.".into();
        page.other = ("All letters, closed ones too", at(true, word, ""));
    }
    let found = app.store.list(filter.clone(), request).await?;
    if let Some(next) = found.next {
        page.next = here(word, &format!("{}.{}", shown::millis(next.last_seen), next.seq));
    }
    let all = count(&app, &filter).await;
    let here = found.rows.len() as u64;
    page.shown = match all {
        Some(all) => format!("{} of {} matching", shown::number(here), shown::number(all)),
        None if found.next.is_none() && after.is_none() => {
            format!("{} of {} matching", shown::number(here), shown::number(here))
        }
        None => format!("{} of more than can be counted at once", shown::number(here)),
    };
    if !found.complete {
        page.incomplete = format!(
            "{} letters were looked at here, and there may be more: go on with the next page. A filter with status, kind or \
             error-class alone is faster.",
            shown::number(found.looked_at)
        );
    }
    if page.chrome.may_act {
        page.acts = acts(&app, &filter, all).await;
    }
    page.rows = found.rows.iter().map(|row| self::row(row, now)).collect();
    Ok(html(&page))
}

/// A word that is no job is perhaps a letter's id, or the beginning of some. As the command's `--id`: in any state.
async fn begins(app: &App, mut filter: Filter) -> Result<(Filter, String), Failure> {
    let mut only_job = Filter::all();
    only_job.job_ids.clone_from(&filter.job_ids);
    let [word] = filter.job_ids.as_slice() else { return Ok((filter, String::new())) };
    if filter != only_job {
        return Ok((filter, String::new()));
    }
    let found = app.store.find(word.clone(), LIMIT + 1).await?;
    if found.iter().any(|row| row.job_id == *word) {
        let said = format!("Letters of the job {}, in any state.", shown::line(word, 200));
        filter.states = LetterState::ALL.to_vec();
        return Ok((filter, said));
    }
    let more = found.len() > LIMIT as usize;
    let ids: Vec<_> = found.into_iter().take(LIMIT as usize).map(|row| row.letter_id).collect();
    if ids.is_empty() {
        let said = format!(
            "No job and no letter begins with {}: a class is written as class:timeout.",
            shown::line(word, 200)
        );
        filter.states = LetterState::ALL.to_vec();
        return Ok((filter, said));
    }
    let first = if more { format!("The first {LIMIT} letters") } else { "Letters".to_owned() };
    let said = format!("{first} whose job or id begins with {}, in any state.", shown::line(word, 200));
    let mut of_ids = Filter::all();
    of_ids.ids = ids;
    Ok((of_ids, said))
}

/// How many match, where that is known at once.
async fn count(app: &App, filter: &Filter) -> Option<u64> {
    let (_, rest) = filter.split();
    let mut counted = Filter::all();
    counted.kinds.clone_from(&filter.kinds);
    counted.error_classes.clone_from(&filter.error_classes);
    counted.states.clone_from(&filter.states);
    if rest != Filter::all() && *filter != counted {
        return None;
    }
    let count = app.patient.count(filter.clone());
    tokio::time::timeout(COUNT_WITHIN, count).await.ok()?.ok()
}

/// What can be done with all that match: each says how many it is for.
async fn acts(app: &App, filter: &Filter, all: Option<u64>) -> Vec<(String, String, &'static str)> {
    let written = filters::written(filter);
    let mut acts = Vec::new();
    for (verb, kind) in [(Verb::Replay, "do"), (Verb::Discard, "undo"), (Verb::Restore { more_replays: 5 }, "plain")] {
        // A verb that no letter here is for is not offered.
        let Ok(members) = OperationRequest::new(verb, filter.clone()).members() else { continue };
        let n = if members == *filter { all } else { count(app, &members).await };
        let scope = match n {
            Some(0) => continue,
            Some(n) => format!("all {}", shown::number(n)),
            None => "all that match".to_owned(),
        };
        let name = match verb {
            Verb::Replay => format!("Replay {scope} {}", app.means.said()),
            Verb::Discard => format!("Discard {scope}"),
            _ => format!("Restore {scope}"),
        };
        acts.push((name, plan_of(app, verb.as_str(), &written), kind));
    }
    acts
}

fn row(row: &LetterRow, now: SystemTime) -> Row {
    let seen = When::new(row.last_seen, now);
    Row {
        id: row.letter_id.clone(),
        job: shown::line(&row.job_id, 120),
        kind: shown::line(&row.kind, 120),
        state: row.state.as_str(),
        class: shown::line(&row.error_class, 120),
        message: shown::line(&row.error_message, 240),
        attempts: shown::number(row.attempts),
        machine: seen.machine,
        moment: seen.moment,
        ago: seen.ago,
    }
}

fn place(text: &str) -> Result<Option<Cursor>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let parts = text.split_once('.').and_then(|(millis, seq)| Some((millis.parse::<u64>().ok()?, seq.parse().ok()?)));
    let place = parts.and_then(|(millis, seq)| {
        let last_seen = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis))?;
        (millis < 1 << 53).then_some(Cursor { last_seen, seq })
    });
    place.map(Some).ok_or_else(|| Failure::bad("`after` is no place in the list"))
}
