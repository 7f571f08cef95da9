//! What an operation would do, before it does it: nothing is changed by looking.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use retry_runtime::dead_letter::{BulkOperations as _, DeadLetterStore as _, Filter, OperationRequest, Plan, Verb};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html};
use super::super::guard;
use super::super::identity::Role;
use super::super::params::{Asked, address};
use super::super::{payload, shown};
use super::{Chrome, filter_of, list_of, segment};
use crate::filters::{self, MOST_VALUES};

/// A page waits so long for what will probably become of the letters; how many there are is known at once.
const PATIENCE: Duration = Duration::from_millis(200);

const NOT_YET: &str = "So many that it takes longer than a page waits to say what will probably become of them.";

/// Letters selected by hand, at most: so many a written filter can name, too.
const SELECTED: usize = MOST_VALUES;

#[derive(Template)]
#[template(path = "plan.html")]
struct Page {
    chrome: Chrome,
    title: String,
    changed: String,
    scope: String,
    list: String,
    /// Where nothing is done.
    back: String,
    matched: u64,
    nothing: String,
    lines: Vec<String>,
    left_out: Vec<String>,
    verb: &'static str,
    filter: String,
    canary: bool,
    button: String,
    promise: &'static str,
}

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let verb = Verb::parse(asked.get("verb"), 5).ok_or_else(|| Failure::bad("`verb` is replay, discard or restore"))?;
    guard::require(&app, &visitor, Role::Operator, None, &format!("plan a {verb}")).await?;
    let ids: Vec<String> = asked.all("id").map(str::to_owned).collect();
    if ids.len() > SELECTED {
        return Err(Failure::bad(format!("{} letters were selected: accepted are {SELECTED}", ids.len())));
    }
    let mut filter = filter_of(asked.get("q"), app.now()).map_err(Failure::bad)?;
    if ids.is_empty() && asked.has("selection") {
        // Said where they can be ticked.
        let all = if asked.has("listed_all") { "1" } else { "" };
        let list = [("q", asked.get("listed")), ("all", all), ("said", "none-selected")];
        return Ok(guard::redirect(&address(&app.path("/letters"), &list)));
    }
    if ids.is_empty() && !asked.has("q") && !asked.has("all") {
        return Err(Failure::bad(
            "no letter was selected: tick some, or use the buttons above the list for all of them",
        ));
    }
    filter.ids.extend(ids);
    show(&app, &visitor, OperationRequest::new(verb, filter), String::new()).await
}

/// The page of a plan; `changed` says why it is shown again.
pub(super) async fn show(
    app: &App,
    visitor: &Visitor,
    request: OperationRequest,
    changed: String,
) -> Result<Response<Body>, Failure> {
    let plan = match tokio::time::timeout(PATIENCE, app.patient.plan(request.clone())).await {
        Ok(plan) => Some(plan?),
        Err(_) => None,
    };
    let matched = match &plan {
        Some(plan) => plan.matched,
        None => app.store.count(request.members()?).await?,
    };
    let written = filters::written(&request.filter);
    let n = shown::number(matched);
    let letters = if matched == 1 { "letter" } else { "letters" };
    let (title, button, promise) = match request.verb {
        Verb::Replay => (
            format!("Replay {n} {letters}?"),
            format!("Replay {n} {}", app.means.said()),
            "The members are frozen when it starts: what comes later is not in it. It can be stopped at any time, and what \
             was not reached stays parked.",
        ),
        Verb::Discard => (
            format!("Discard {n} {letters}?"),
            format!("Discard {n} {letters}"),
            "Nobody will replay them. They stay here with payload and history until retention deletes them, and can be \
             restored until then.",
        ),
        _ => (
            format!("Restore {n} {letters}?"),
            format!("Park {n} {letters} again"),
            "They are parked again, and can be replayed.",
        ),
    };
    Ok(html(&Page {
        chrome: Chrome::new(app, visitor, "Letters", title.clone()),
        title,
        changed,
        scope: scope(&request.filter, &written),
        back: match request.filter.ids.as_slice() {
            [one] => app.path(&format!("/letters/{}", segment(one))),
            _ => list_of(app, &written),
        },
        list: list_of(app, &written),
        matched,
        nothing: format!("No letter here can be {}.", done(request.verb)),
        lines: plan.as_ref().map_or_else(|| vec![NOT_YET.to_owned()], lines),
        left_out: plan.as_ref().map(left_out).unwrap_or_default(),
        verb: request.verb.as_str(),
        filter: payload::with_escapes(&request.filter.to_json()),
        canary: matched > 20,
        button,
        promise,
    }))
}

fn done(verb: Verb) -> &'static str {
    match verb {
        Verb::Replay => "replayed: only parked letters can",
        Verb::Discard => "discarded: only parked and abandoned letters can",
        _ => "restored: only closed letters can",
    }
}

fn scope(filter: &Filter, written: &str) -> String {
    match (filter.ids.len(), written) {
        (0, "") => "all letters".to_owned(),
        (n, _) if n > 3 => format!("{n} letters selected by hand"),
        _ => shown::line(written, 400),
    }
}

fn lines(plan: &Plan) -> Vec<String> {
    if plan.verb == Verb::Replay {
        shown::line(&plan.to_string(), 2_000).split("; ").map(str::to_owned).collect()
    } else {
        Vec::new()
    }
}

fn left_out(plan: &Plan) -> Vec<String> {
    let said = [
        (plan.abandoned, "abandoned and left out: restore them first"),
        (plan.under_way, "being replayed at the moment, and left out"),
    ];
    said.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}.", shown::number(*n))).collect()
}
