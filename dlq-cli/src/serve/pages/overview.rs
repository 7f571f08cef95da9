//! The first page: what is owed, since when, whether it still comes, who is at it, and whether the store is well.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;

use super::super::app::{App, Visitor};
use super::super::facts::{AGES, Cache, Facts};
use super::super::failure::{Failure, html, soon};
use super::super::params::Asked;
use super::super::shown;
use super::audit::{Row as Event, rows};
use super::groups::{Card, card};
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

struct Finding {
    severity: &'static str,
    message: String,
    advice: String,
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
    failed: Vec<String>,
    tiles: Vec<Tile>,
    operations: Vec<Operation>,
    groups: Vec<Card>,
    more_groups: bool,
    ages: Vec<&'static str>,
    matrix: Vec<Line>,
    findings: Vec<Finding>,
    degraded: Vec<String>,
    events: Vec<Event>,
    replayers: Vec<String>,
    whole: Vec<(&'static str, String)>,
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
    let facts = Cache::get(&app).await.ok_or_else(Failure::slow)?;
    let now = app.now();
    let owed = facts.summary.owed();
    let (headline, tone) = headline(&facts, now);
    let findings = facts.findings.iter().map(|found| Finding {
        severity: found.severity.as_str(),
        message: shown::line(&found.message, 600),
        advice: shown::line(&found.advice, 600),
    });
    let page = Page {
        chrome: Chrome::new(&app, &visitor, "Overview", format!("{} owed", shown::number(owed)))
            .said(asked.get("said"))
            .live(),
        headline,
        tone,
        trend: trend(&facts),
        as_of: shown::moment(facts.at),
        is_counting: facts.is_counting,
        failed: facts.failed.iter().map(|why| shown::line(why, 600)).collect(),
        tiles: tiles(&app, &facts, now),
        operations: facts.operations.iter().map(|op| operation(&app, op, now)).collect(),
        groups: facts.groups.groups.iter().take(GROUPS).map(|group| card(&app, group, now)).collect(),
        more_groups: facts.groups.next.is_some() || facts.groups.groups.len() > GROUPS,
        ages: AGES.iter().map(|(name, ..)| *name).collect(),
        matrix: matrix(&app, &facts),
        findings: findings.collect(),
        degraded: facts.degraded.iter().map(|degraded| shown::line(&degraded.to_string(), 400)).collect(),
        events: rows(&facts.events, now),
        replayers: replayers(&facts, now),
        whole: whole(&facts, now),
    };
    Ok(if page.is_counting { soon(&page) } else { html(&page) })
}

fn headline(facts: &Facts, now: std::time::SystemTime) -> (String, &'static str) {
    let owed = facts.summary.owed();
    if facts.summary.is_clean() && facts.lost == 0 {
        return ("Nothing is owed.".to_owned(), "ok");
    }
    let since = facts
        .oldest
        .map(|oldest| format!(", the oldest for {}", shown::span(now.duration_since(oldest).unwrap_or_default())));
    let are = if owed == 1 { "is" } else { "are" };
    let tone = if facts.lost > 0 { "bad" } else { "owed" };
    (format!("{} {are} owed{}.", shown::count(owed, "letter", "letters"), since.unwrap_or_default()), tone)
}

/// Is it still arriving, or over?
fn trend(facts: &Facts) -> String {
    if facts.is_counting {
        return "More is being counted: this page renews itself in a moment.".to_owned();
    }
    let (now, past) = &facts.arrivals;
    let before = facts.hours.iter().rev().nth(1).copied().unwrap_or(0);
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
    let summary = &facts.summary;
    let tile = |name, n: u64, q: &str, note: &str, tone| Tile {
        name,
        value: shown::number(n),
        to: if q.is_empty() { String::new() } else { list_of(app, q) },
        note: note.to_owned(),
        tone: if n > 0 { tone } else { "" },
    };
    let (arrived, past) = &facts.arrivals;
    let usual = past.iter().sum::<u64>() / (past.len() as u64).max(1);
    let oldest = facts.oldest.map(|oldest| shown::span(now.duration_since(oldest).unwrap_or_default()));
    let more = [(summary.orphaned, "of processes that died"), (summary.set_aside, "files set aside as corrupt")];
    let more: Vec<_> = more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let beside = if more.is_empty() { "wait in files beside the store".to_owned() } else { more.join(", ") };
    vec![
        tile("parked", summary.total_parked(), "status:parked", "wait for a replay", "owed"),
        tile("replaying", summary.replaying, "status:replaying", "under a lease", "busy"),
        tile("abandoned", summary.abandoned, "status:abandoned", "failed too often", "warn"),
        tile(
            "recovered in 24 h",
            facts.store.as_ref().map_or(0, |store| store.recovered_in_a_day),
            "status:recovered",
            "",
            "good",
        ),
        Tile {
            name: "oldest",
            value: oldest.unwrap_or_else(|| if facts.is_counting { "…" } else { "–" }.to_owned()),
            to: if facts.oldest.is_some() { format!("{}&order=oldest", list_of(app, "owed")) } else { String::new() },
            note: "since its first failure".to_owned(),
            tone: "",
        },
        if facts.is_counting {
            let (value, note) = ("…".to_owned(), "being counted".to_owned());
            Tile { name: "arrived this hour", value, to: String::new(), note, tone: "" }
        } else {
            let note = format!("usually {} by its end", shown::number(usual));
            tile("arrived this hour", *arrived, "", &note, if *arrived > usual * 2 { "warn" } else { "" })
        },
        tile("spilled", summary.spilled, "", &beside, "warn"),
        tile("lost", facts.lost, "", "in 30 days", "bad"),
    ]
}

fn matrix(app: &App, facts: &Facts) -> Vec<Line> {
    let today = retry_runtime::counters::Day::of(facts.at);
    let day = |ago: u64| today.plus(-i64::try_from(ago).unwrap_or(0)).to_string();
    let rows = facts.matrix.iter().take(CLASSES).map(|(class, ages)| {
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

/// Who is replaying, and until when that is known.
fn replayers(facts: &Facts, now: std::time::SystemTime) -> Vec<String> {
    let rows = facts.replaying.iter().map(|row| {
        let owner = row.owner.as_deref().unwrap_or("somebody");
        let lease = row.lease_until.map(|end| format!(", lease ends {}", shown::ago(end, now))).unwrap_or_default();
        shown::line(&format!("{owner} replays {} of {}{lease}", row.job_id, row.kind), 400)
    });
    rows.collect()
}

/// The file, who wrote into it, and what is due next.
fn whole(facts: &Facts, now: std::time::SystemTime) -> Vec<(&'static str, String)> {
    let Some(store) = &facts.store else { return Vec::new() };
    let mut out = Vec::new();
    if let Some(due) = store.next_due {
        out.push(("next hint due", format!("{} ({})", shown::ago(due, now), shown::moment(due))));
    }
    let kept = match store.discarded_kept {
        Some(kept) => format!("can be restored for {}", shown::span(kept)),
        None => "are kept, and can be restored at any time".to_owned(),
    };
    out.push(("discarded letters", kept));
    let writers: Vec<_> = store.writers.iter().take(4).map(|(name, n)| format!("{name} ({n})")).collect();
    if !writers.is_empty() {
        out.push(("wrote the newest letters", shown::line(&writers.join(", "), 400)));
    }
    for process in store.processes.iter().take(5) {
        let seen = shown::ago(process.seen_at, now);
        out.push(("answers for jobs", shown::line(&format!("{}, last seen {seen}", process.name), 400)));
    }
    let files: Vec<_> = store
        .files
        .iter()
        .take(20)
        .map(|file| format!("{} {}", file.role.as_str().replace('_', " "), shown::bytes(file.bytes)))
        .collect();
    if !files.is_empty() {
        out.push(("files", files.join(", ")));
    }
    if let Some(free) = store.free_bytes {
        out.push(("free on the disk", shown::bytes(free)));
    }
    out
}
