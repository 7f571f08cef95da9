//! Failures that are one failure.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
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
use super::{Chrome, When, list_of, plan_of};
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
}

pub(super) fn card(app: &App, group: &FailureGroup, now: SystemTime) -> Card {
    let (counts, newest) = (&group.counts, &group.newest);
    let of = |state| counts.states.get(&state).copied().unwrap_or(0);
    let (parked, abandoned) = (of(LetterState::Parked), of(LetterState::Abandoned));
    let q = |states: &str| format!("{states} {}", filters::word("group", &counts.fingerprint));
    let (first, last) = (When::new(counts.first_seen, now), When::new(counts.last_seen, now));
    let today: u64 = group.trend.per_hour.iter().sum();
    let (waits, owed) = (q("status:parked"), q("status:parked status:abandoned"));
    let button = |n: u64, said: String| if n > 0 { said } else { String::new() };
    Card {
        letters: shown::count(counts.letters(), "letter", "letters"),
        to: list_of(app, &q("owed")),
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
    }
}

#[derive(Template)]
#[template(path = "groups.html")]
struct Page {
    chrome: Chrome,
    /// It takes longer than a page waits.
    is_counting: bool,
    groups: Vec<Card>,
    orders: Vec<(&'static str, String, bool)>,
    next: String,
}

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let by_newest = asked.get("order") == "newest";
    let order = if by_newest { GroupOrder::NewestFirst } else { GroupOrder::MostLetters };
    let word = if by_newest { "newest" } else { "" };
    let after = place(asked.get("after"))?;
    let found = sorted::page(&app, GroupsRequest::new(Filter::owed()).order(order).after(after)).await?;
    let is_counting = found.is_none();
    let found = found.unwrap_or_default();
    let next = found.next.as_ref().map(|next| {
        let place = format!("{}.{}.{}", next.letters, shown::millis(next.last_seen), next.fingerprint);
        address(&app.path("/groups"), &[("order", word), ("after", &place)])
    });
    let now = app.now();
    let page = Page {
        chrome: Chrome::new(&app, &visitor, "Groups", "Groups").said(asked.get("said")).live(),
        is_counting,
        groups: found.groups.iter().map(|group| card(&app, group, now)).collect(),
        orders: vec![
            ("most letters first", app.path("/groups"), !by_newest),
            ("newest first", address(&app.path("/groups"), &[("order", "newest")]), by_newest),
        ],
        next: next.unwrap_or_default(),
    };
    Ok(if is_counting { soon(&page) } else { html(&page) })
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
