//! Starting operations.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use retry_runtime::dead_letter::{
    BulkOperations as _, DeadLetterStore as _, Filter, Operation, OperationRequest, OperationRunner, Verb,
};

use super::super::app::{App, Visitor};
use super::super::failure::Failure;
use super::super::guard::{self, Form, redirect};
use super::super::identity::Role;
use super::super::params::{Params, address};
use super::super::shown;
use super::plan;

/// Starts what a plan has shown. Where more letters match by now than were shown, the plan is shown again.
pub(in super::super) async fn start(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(Form(form)): Extension<Form>,
) -> Result<Response<Body>, Failure> {
    let more = if form.has("more_replays") { number(&form, "more_replays")? } else { 5 };
    let more = u32::try_from(more).map_err(|_| Failure::bad("`more_replays` is too large"))?;
    let verb =
        Verb::parse(form.get("verb"), more).ok_or_else(|| Failure::bad("`verb` is replay, discard or restore"))?;
    let filter = Filter::from_json(form.get("filter"))?;
    let what = format!("{verb} {}", filter.to_json());
    let role = if form.has("force") { Role::Admin } else { Role::Operator };
    guard::require(&app, &visitor, role, None, &what).await?;
    if verb == Verb::Discard && form.get("reason").trim().is_empty() {
        return Err(Failure::bad("say why these letters are discarded: the reason stands in the audit"));
    }
    let mut request = OperationRequest::new(verb, filter);
    options(&form, &mut request)?;
    let expected = number(&form, "expected")?;
    // Counted as the plan counted: what the options leave out is told there.
    let members = OperationRequest::new(verb, request.filter.clone()).members()?;
    let matched = app.store.count(members).await?;
    if matched > expected {
        let changed = format!(
            "{} match by now, not {}: look again before you go on. Nothing was done.",
            shown::number(matched),
            shown::number(expected)
        );
        return plan::show(&app, &visitor, request, changed).await;
    }
    let op = app.store.start(request, visitor.actor(form.get("reason"))).await?;
    run(&app, &op);
    app.facts.stale();
    app.live.changed();
    Ok(redirect(&address(&app.path(&format!("/operations/{}", op.id)), &[("said", "started")])))
}

fn options(form: &Params, request: &mut OperationRequest) -> Result<(), Failure> {
    let options = &mut request.options;
    options.canary = form.has("canary");
    options.exclude_permanent = form.has("exclude_permanent");
    options.force = form.has("force");
    if form.has("rate") {
        let rate = form.get("rate").trim().parse::<f64>();
        options.rate = Some(rate.map_err(|_| Failure::bad("the rate is no number of letters a second"))?);
    }
    if form.has("concurrency") {
        let at_once = u32::try_from(number(form, "concurrency")?);
        options.concurrency = at_once.map_err(|_| Failure::bad("`concurrency` is too large"))?;
    }
    Ok(())
}

fn number(form: &Params, name: &str) -> Result<u64, Failure> {
    form.get(name).trim().parse().map_err(|_| Failure::bad(format!("`{name}` is no number")))
}

/// Runs an operation that is for this process to run, beside what else it does. It lives in the store: whatever happens here,
/// somebody can go on with it.
pub(super) fn run(app: &Arc<App>, op: &Operation) {
    let running = if op.verb == Verb::Replay {
        let Some(running) = app.means.run(op.id.clone()) else { return };
        running
    } else {
        let (store, id) = (Arc::clone(&app.store), op.id.clone());
        Box::pin(async move { OperationRunner::new(store).name("dlq serve").run(id).await })
    };
    let app = Arc::clone(app);
    let id = op.id.clone();
    tokio::spawn(async move {
        if let Err(error) = running.await {
            eprintln!("dlq serve: operation {id}: {error}");
        }
        app.facts.stale();
        app.live.changed();
    });
}
