//! The first page: what is owed, since when, whether it still comes, who is at it, and whether the store is well.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use retry_runtime::dead_letter::Filter;

use super::super::app::{App, Visitor};
use super::super::cache::Cache;
use super::super::facts::{AGES, Facts};
use super::super::failure::{Failure, html, soon};
use super::super::params::Asked;
use super::super::shown;
use super::groups::{Card, card};
use super::night::{self, Answer};
use super::operations::{Card as Operation, card as operation};
use super::{Chrome, list_of};
use crate::filters;

struct Tile {
    name: &'static str,
    value: String,
    to: String,
    note: String,
    tone: &'static str,
}

struct Line {
    class: String,
    to: String,
    cells: Vec<Cell>,
}

struct Cell {
    value: String,
    to: String,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    chrome: Chrome,
    headline: String,
    tone: &'static str,
    trend: String,
    as_of: String,
    /// What takes long to count is not there yet.
    is_counting: bool,
    /// Said loudly where the numbers are not of this moment.
    old: String,
    failed: Vec<String>,
    tiles: Vec<Tile>,
    answers: Vec<Answer>,
    operations: Vec<Operation>,
    groups: Vec<Card>,
    more_groups: bool,
    ages: Vec<&'static str>,
    matrix: Vec<Line>,
}

/// Groups on the first page.
const GROUPS: usize = 10;

/// Rows of the matrix at most.
const CLASSES: usize = 20;

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let facts = Facts::get(&app).await.ok_or_else(Failure::slow)?;
    let now = app.now();
    let (known, counted) = (&facts.now.numbers, facts.counted());
    let owed = known.summary.owed();
    let (headline, tone) = headline(&facts, now);
    let within = Filter::owed();
    let page = Page {
        chrome: Chrome::new(&app, &visitor, "Overview", format!("{} owed", shown::number(owed)))
            .said(asked.get("said"))
            .live(),
        headline,
        tone,
        trend: trend(&facts),
        as_of: shown::moment(facts.now.at),
        old: old(&app, &facts),
        is_counting: facts.is_counting(),
        failed: known.failed.iter().chain(&counted.failed).map(|why| shown::line(why, 600)).collect(),
        tiles: tiles(&app, &facts, now),
        answers: night::answers(&app, &facts, now),
        operations: known.operations.iter().map(|op| operation(&app, op, now)).collect(),
        groups: counted.groups.groups.iter().take(GROUPS).map(|group| card(&app, group, &within, now)).collect(),
        more_groups: counted.groups.next.is_some() || counted.groups.groups.len() > GROUPS,
        ages: AGES.iter().map(|(name, ..)| *name).collect(),
        matrix: matrix(&app, &facts),
    };
    Ok(if page.is_counting { soon(&page) } else { html(&page) })
}

/// What is not of this moment, and how old it is.
fn old(app: &App, facts: &Facts) -> String {
    let mut said = Vec::new();
    if !Cache::may_be_shown(app, &facts.now) {
        said.push(format!("All numbers are {} old", shown::span(facts.now.age())));
    }
    if let Some(counted) = facts.counted.as_ref().filter(|counted| !Cache::may_be_shown(app, counted)) {
        said.push(format!("Failures, ages and arrivals were counted {} ago", shown::span(counted.age())));
    }
    if said.is_empty() { String::new() } else { format!("{}: the store did not answer in time.", said.join("; ")) }
}

fn headline(facts: &Facts, now: std::time::SystemTime) -> (String, &'static str) {
    let owed = facts.now.numbers.summary.owed();
    if facts.now.numbers.summary.is_clean() && facts.now.numbers.lost == 0 {
        return ("Nothing is owed.".to_owned(), "ok");
    }
    // The oldest one may be gone since it was looked for.
    let oldest = facts.counted().oldest.filter(|_| owed > 0);
    let since = oldest
        .map(|oldest| format!(", the oldest for {}", shown::span(now.duration_since(oldest).unwrap_or_default())));
    let are = if owed == 1 { "is" } else { "are" };
    let tone = if facts.now.numbers.lost > 0 { "bad" } else { "owed" };
    (format!("{} {are} owed{}.", shown::count(owed, "letter", "letters"), since.unwrap_or_default()), tone)
}

/// Is it still arriving, or over?
fn trend(facts: &Facts) -> String {
    if facts.is_counting() {
        return "More is being counted: this page renews itself in a moment.".to_owned();
    }
    let (now, past) = &facts.counted().arrivals;
    let before = facts.counted().hours.iter().rev().nth(1).copied().unwrap_or(0);
    let usual = match (past.iter().min(), past.iter().max()) {
        (Some(least), Some(most)) if least != most => {
            format!("{} to {} on the seven days before", shown::number(*least), shown::number(*most))
        }
        (Some(same), _) => format!("{} on each of the seven days before", shown::number(*same)),
        _ => "not known on the days before".to_owned(),
    };
    let said = match (*now, before) {
        (0, 0) => "Nothing came in this hour and the last",
        (0, _) => "Nothing came in this hour",
        _ => "Still arriving",
    };
    format!(
        "{said}: {} since the full hour, {} in the hour before; in the same hour {usual}.",
        shown::number(*now),
        shown::number(before)
    )
}

fn tiles(app: &App, facts: &Facts, now: std::time::SystemTime) -> Vec<Tile> {
    let (known, counted) = (&facts.now.numbers, facts.counted());
    let summary = &known.summary;
    let tile = |name, n: u64, q: &str, note: &str, tone| Tile {
        name,
        value: shown::number(n),
        to: if q.is_empty() { String::new() } else { list_of(app, q) },
        note: note.to_owned(),
        tone: if n > 0 { tone } else { "" },
    };
    let (arrived, past) = &counted.arrivals;
    let usual = past.iter().sum::<u64>() / (past.len() as u64).max(1);
    let oldest = counted.oldest.map(|oldest| shown::span(now.duration_since(oldest).unwrap_or_default()));
    let more = [(summary.orphaned, "of processes that died"), (summary.set_aside, "files set aside as corrupt")];
    let more: Vec<_> = more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let beside = if more.is_empty() { "wait in files beside the store".to_owned() } else { more.join(", ") };
    vec![
        tile("parked", summary.total_parked(), "status:parked", "wait for a replay", "owed"),
        tile("replaying", summary.replaying, "status:replaying", "under a lease", "busy"),
        tile("abandoned", summary.abandoned, "status:abandoned", "failed too often", "warn"),
        tile(
            "recovered in 24 h",
            known.store.as_ref().map_or(0, |store| store.recovered_in_a_day),
            "status:recovered",
            "",
            "good",
        ),
        Tile {
            name: "oldest",
            value: oldest.unwrap_or_else(|| if facts.is_counting() { "…" } else { "–" }.to_owned()),
            to: if counted.oldest.is_some() { format!("{}&order=oldest", list_of(app, "owed")) } else { String::new() },
            note: "since its first failure".to_owned(),
            tone: "",
        },
        if facts.is_counting() {
            let (value, note) = ("…".to_owned(), "being counted".to_owned());
            Tile { name: "arrived this hour", value, to: String::new(), note, tone: "" }
        } else {
            let note = format!("usually {} by its end", shown::number(usual));
            tile("arrived this hour", *arrived, "", &note, if *arrived > usual * 2 { "warn" } else { "" })
        },
        tile("spilled", summary.spilled, "", &beside, "warn"),
        tile("lost", known.lost, "", "in 30 days", "bad"),
    ]
}

fn matrix(app: &App, facts: &Facts) -> Vec<Line> {
    let today = retry_runtime::counters::Day::of(facts.counted.as_ref().map_or(facts.now.at, |counted| counted.at));
    let day = |ago: u64| today.plus(-i64::try_from(ago).unwrap_or(0)).to_string();
    let rows = facts.counted().matrix.iter().take(CLASSES).map(|(class, ages)| {
        let word = filters::word("error-class", class);
        let cells = AGES.iter().zip(ages).map(|((_, from, to), n)| {
            // Its days begin so many days ago, and end before others begin.
            let since = if *to == 0 { String::new() } else { format!(" since:{}", day(to - 1)) };
            let until = if *from == 0 { String::new() } else { format!(" until:{}", day(from - 1)) };
            let to = if *n == 0 { String::new() } else { list_of(app, &format!("owed {word}{since}{until}")) };
            Cell { value: shown::number(*n), to }
        });
        Line { class: shown::line(class, 200), to: list_of(app, &format!("owed {word}")), cells: cells.collect() }
    });
    rows.collect()
}
