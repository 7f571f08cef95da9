//! Daily counters, drawn, with the line above which a day is degraded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use retry_runtime::counters::{DailyCounters as _, Thresholds as _};
use retry_runtime::dead_letter::{ArrivalKey, Arrivals, Bucket};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html};
use super::super::guard::{self, Form, redirect};
use super::super::identity::Role;
use super::super::params::{Asked, address};
use super::super::{shown, svg};
use super::Chrome;

/// Plots a page.
const PLOTS: usize = 24;

struct Day {
    name: String,
    value: u64,
    said: String,
    bad: bool,
}

struct Plot {
    operation: String,
    counter: String,
    operation_raw: String,
    counter_raw: String,
    total: String,
    has_limit: bool,
    limit_said: String,
    /// The threshold; empty without one.
    above: String,
    bad: usize,
    drawn: String,
    days: Vec<Day>,
    can_have_limit: bool,
}

#[derive(Template)]
#[template(path = "counters.html")]
struct Page {
    chrome: Chrome,
    /// As they are, and as they are shown.
    operations: Vec<(String, String)>,
    here: String,
    plots: Vec<Plot>,
    may_set: bool,
    more: String,
}

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let here = asked.get("operation").to_owned();
    let today = app.store.today();
    let known = app.store.counters(today.plus(-29), today).await?;
    let thresholds = app.store.thresholds().await?;
    let operations: BTreeSet<String> = known.iter().map(|(operation, _)| operation.clone()).take(500).collect();
    let wanted: Vec<_> = known.into_iter().filter(|(operation, _)| here.is_empty() || *operation == here).collect();
    let mut plots = Vec::new();
    if here.is_empty() {
        plots.extend(parkings(&app, today).await?);
    }
    for (operation, counter) in wanted.iter().take(PLOTS) {
        let days = app.store.recent(operation.clone(), counter.clone(), 30).await?;
        let limit = thresholds.iter().find(|set| set.operation == *operation && set.counter == *counter);
        let above = limit.map(|set| set.above);
        let values: Vec<u64> = days.iter().map(|(_, n)| *n).collect();
        let is_bad = |n: u64| above.is_some_and(|above| n > above);
        let total = shown::number(values.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)));
        plots.push(Plot {
            operation: shown::line(operation, 100),
            counter: shown::line(counter, 100),
            operation_raw: operation.clone(),
            counter_raw: counter.clone(),
            has_limit: above.is_some(),
            limit_said: above.map(shown::number).unwrap_or_default(),
            above: above.map(|above| above.to_string()).unwrap_or_default(),
            bad: values.iter().filter(|n| is_bad(**n)).count(),
            drawn: svg::days(&values, above, &format!("{total} in 30 days; the numbers are in the table")),
            total,
            days: days.iter().rev().map(|(day, n)| of_day(*day, *n, is_bad(*n))).collect(),
            can_have_limit: true,
        });
    }
    let chrome = Chrome::new(&app, &visitor, "Counters", "Daily counters").said(asked.get("said"));
    let left_out = wanted.len().saturating_sub(PLOTS);
    Ok(html(&Page {
        may_set: chrome.is_admin,
        chrome,
        operations: operations.into_iter().map(|name| (name.clone(), shown::line(&name, 200))).collect(),
        here,
        plots,
        more: if left_out > 0 { format!("{left_out} more counters: choose an operation.") } else { String::new() },
    }))
}

fn of_day(day: retry_runtime::counters::Day, n: u64, bad: bool) -> Day {
    Day { name: day.to_string(), value: n, said: shown::number(n), bad }
}

/// Parkings per day, which every store counts; none where there were none.
async fn parkings(app: &App, today: retry_runtime::counters::Day) -> Result<Option<Plot>, Failure> {
    let first = today.plus(-29);
    let mut of_day: BTreeMap<_, u64> = first.through(today).map(|day| (day, 0)).collect();
    let question = Arrivals::new(ArrivalKey::All, first.start(), today.start(), Bucket::Day);
    for series in app.patient.arrivals(question).await? {
        for (at, n) in series.counts {
            *of_day.entry(retry_runtime::counters::Day::of(at)).or_default() += n;
        }
    }
    let values: Vec<u64> = of_day.values().copied().collect();
    let total = values.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
    if total == 0 {
        return Ok(None);
    }
    let total = shown::number(total);
    Ok(Some(Plot {
        operation: "dead letters".to_owned(),
        counter: "parkings".to_owned(),
        operation_raw: String::new(),
        counter_raw: String::new(),
        has_limit: false,
        limit_said: String::new(),
        above: String::new(),
        bad: 0,
        drawn: svg::days(&values, None, &format!("{total} in 30 days; the numbers are in the table")),
        total,
        days: of_day.iter().rev().map(|(day, n)| self::of_day(*day, *n, false)).collect(),
        can_have_limit: false,
    }))
}

/// Sets a threshold, or takes it away.
pub(in super::super) async fn threshold(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(Form(form)): Extension<Form>,
) -> Result<Response<Body>, Failure> {
    let (operation, counter, above) = (form.get("operation"), form.get("counter"), form.get("above").trim());
    let what = format!("a threshold for {operation}/{counter}");
    guard::require(&app, &visitor, Role::Admin, None, &what).await?;
    let (operation, counter) = (operation.to_owned(), counter.to_owned());
    let said = if above.is_empty() {
        app.store.remove_threshold(operation, counter, visitor.actor("")).await?;
        "no-threshold"
    } else {
        let above = above.parse().map_err(|_| Failure::bad("the threshold is no number"))?;
        app.store.set_threshold(operation, counter, above, visitor.actor("")).await?;
        "threshold"
    };
    app.facts.stale();
    app.live.changed();
    Ok(redirect(&address(&app.path("/counters"), &[("said", said)])))
}
