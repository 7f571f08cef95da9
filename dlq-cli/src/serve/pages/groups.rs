//! Failures that are one failure.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use retry_runtime::Disposition;
use retry_runtime::dead_letter::{
    FailureGroup, FailureGroups as _, Filter, GroupCursor, GroupOrder, GroupsRequest, LetterState,
};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html, soon};
use super::super::guard::Form;
use super::super::guard::redirect;
use super::super::identity::Role;
use super::super::params::{Asked, address};
use super::super::sorted;
use super::super::{guard, shown, svg};
use super::{Chrome, When, filter_of, list_of, plan_of, words};
use crate::filters;

/// One group, as it is shown.
pub(super) struct Card {
    pub(super) letters: String,
    pub(super) to: String,
    pub(super) class: String,
    pub(super) kind: String,
    pub(super) states: Vec<(String, &'static str)>,
    pub(super) spark: String,
    pub(super) message: String,
    pub(super) first: String,
    pub(super) first_machine: String,
    pub(super) last: String,
    pub(super) last_machine: String,
    pub(super) error_type: String,
    pub(super) fingerprint: String,
    pub(super) note: String,
    pub(super) note_by: String,
    pub(super) replay: String,
    pub(super) replay_to: String,
    pub(super) discard: String,
    pub(super) discard_to: String,
    /// It will fail again as it is: a replay is nothing to suggest.
    pub(super) is_permanent: bool,
}

/// A group of the letters that a filter means.
pub(super) fn card(app: &App, group: &FailureGroup, within: &Filter, now: SystemTime) -> Card {
    let (counts, newest) = (&group.counts, &group.newest);
    let of = |state| counts.states.get(&state).copied().unwrap_or(0);
    let (parked, abandoned) = (of(LetterState::Parked), of(LetterState::Abandoned));
    // What is counted here is what is meant.
    let q = |states: &[LetterState]| {
        let mut filter = within.clone();
        filter.fingerprints = vec![counts.fingerprint.clone()];
        filter.states.retain(|state| states.contains(state));
        if within.states.is_empty() {
            filter.states = states.to_vec();
        }
        filters::written(&filter)
    };
    let (first, last) = (When::new(counts.first_seen, now), When::new(counts.last_seen, now));
    let today: u64 = group.trend.per_hour.iter().sum();
    let (waits, owed) = (q(&[LetterState::Parked]), q(&[LetterState::Parked, LetterState::Abandoned]));
    let button = |n: u64, said: String| if n > 0 { said } else { String::new() };
    Card {
        letters: shown::count(counts.letters(), "letter", "letters"),
        to: list_of(app, &q(LetterState::ALL)),
        class: shown::line(&newest.error_class, 200),
        kind: shown::line(&newest.kind, 200),
        states: counts.states.iter().map(|(state, n)| (shown::number(*n), state.as_str())).collect(),
        spark: svg::sparkline(
            &group.trend.per_hour,
            &format!("{} in the last 24 hours", shown::count(today, "parking", "parkings")),
        ),
        message: shown::text(&newest.error_message, 600),
        first: first.ago,
        first_machine: first.machine,
        last: last.ago,
        last_machine: last.machine,
        error_type: shown::line(&newest.error_type, 200),
        fingerprint: counts.fingerprint.clone(),
        note: group.note.as_ref().map(|note| shown::line(&note.text, 2_000)).unwrap_or_default(),
        note_by: group
            .note
            .as_ref()
            .map(|note| format!("{}, {}", shown::line(&note.actor, 200), shown::ago(note.at, now)))
            .unwrap_or_default(),
        replay: button(parked, format!("Replay {} {}", shown::number(parked), app.means.said())),
        replay_to: plan_of(app, "replay", &waits),
        discard: button(parked + abandoned, format!("Discard {}", shown::number(parked + abandoned))),
        discard_to: plan_of(app, "discard", &owed),
        is_permanent: newest.disposition == Disposition::Permanent,
    }
}

#[derive(Template)]
#[template(path = "groups.html")]
struct Page {
    chrome: Chrome,
    q: String,
    words: String,
    /// It takes longer than a page waits.
    is_counting: bool,
    error: String,
    /// Which letters are grouped, in words.
    said: &'static str,
    /// Closed ones too, or only what is owed.
    other: (&'static str, String),
    groups: Vec<Card>,
    orders: Vec<(&'static str, String, bool)>,
    next: String,
}

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let (q, all, by_newest) = (asked.get("q"), asked.has("all"), asked.get("order") == "newest");
    let order = if by_newest { GroupOrder::NewestFirst } else { GroupOrder::MostLetters };
    let now = app.now();
    let here = |all: bool, order: &str, after: &str| {
        let all = if all { "1" } else { "" };
        address(&app.path("/groups"), &[("q", q), ("all", all), ("order", order), ("after", after)])
    };
    let word = if by_newest { "newest" } else { "" };
    let mut page = Page {
        chrome: Chrome::new(&app, &visitor, "Groups", "Groups").said(asked.get("said")).live(),
        q: shown::line(q, 4_000),
        words: words(),
        is_counting: false,
        error: String::new(),
        said: if all { "All letters, closed ones too." } else { "What is owed." },
        other: if all {
            ("Only what is owed", here(false, word, ""))
        } else {
            ("All failures, closed ones too", here(true, word, ""))
        },
        groups: Vec::new(),
        orders: vec![
            ("most letters first", here(all, "", ""), !by_newest),
            ("newest failure first", here(all, "newest", ""), by_newest),
        ],
        next: String::new(),
    };
    let mut filter = match filter_of(q, now) {
        Ok(filter) => filter,
        Err(why) => {
            page.error = shown::line(&why, 600);
            let mut response = html(&page);
            *response.status_mut() = axum::http::StatusCode::BAD_REQUEST;
            return Ok(response);
        }
    };
    if !filter.states.is_empty() {
        (page.said, page.other.1) = ("What the filter says.", String::new());
    } else if !all {
        filter.states = Filter::owed().states;
    }
    let after = place(asked.get("after"))?;
    let found = sorted::page(&app, GroupsRequest::new(filter.clone()).order(order).after(after)).await?;
    let Some(found) = found else {
        page.is_counting = true;
        return Ok(soon(&page));
    };
    if let Some(next) = found.next {
        page.next =
            here(all, word, &format!("{}.{}.{}", next.letters, shown::millis(next.last_seen), next.fingerprint));
    }
    page.groups = found.groups.iter().map(|group| card(&app, group, &filter, now)).collect();
    Ok(html(&page))
}

fn place(text: &str) -> Result<Option<GroupCursor>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut parts = text.splitn(3, '.');
    let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
    let (letters, millis) = (number(), number());
    let seen = millis.and_then(|millis| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis)));
    match (letters, seen, parts.next()) {
        (Some(letters), Some(last_seen), Some(group)) => {
            Ok(Some(GroupCursor { letters, last_seen, fingerprint: group.to_owned() }))
        }
        _ => Err(Failure::bad("`after` is no place among the groups")),
    }
}

/// Notes something about a group.
pub(in super::super) async fn note(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(Form(form)): Extension<Form>,
) -> Result<Response<Body>, Failure> {
    guard::require(&app, &visitor, Role::Operator, None, "note a group").await?;
    let note = retry_runtime::attempt::cut_middle(form.get("note"), 2_000).into_owned();
    app.store.note(form.get("group").to_owned(), note, visitor.actor("")).await?;
    app.facts.stale();
    app.live.changed();
    let back = if form.get("from") == "Groups" { "/groups" } else { "/" };
    Ok(redirect(&address(&app.path(back), &[("said", "noted")])))
}
