//! What is done to one letter by hand.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use retry_runtime::dead_letter::{DeadLetterStore as _, Edit, Incident, LetterDetail, Payload, PayloadDiff, Release};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html};
use super::super::guard::{Form, redirect};
use super::super::identity::Role;
use super::super::params::{Params, address};
use super::super::{payload, shown};
use super::Chrome;
use super::letter::{find, may};

/// The lines of a difference that are shown.
const LINES: usize = 500;

#[derive(Template)]
#[template(path = "edit.html")]
struct Page {
    chrome: Chrome,
    id: String,
    job: String,
    base_revision: u32,
    text: String,
    reason: String,
    error: String,
    diff: Vec<(&'static str, String)>,
}

/// Discards, restores, resolves or releases a letter; edits have steps of their own.
pub(in super::super) async fn act(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(Form(form)): Extension<Form>,
    Path((id, verb)): Path<(String, String)>,
) -> Result<Response<Body>, Failure> {
    let role = if verb == "release" { Role::Admin } else { Role::Operator };
    if !matches!(verb.as_str(), "discard" | "restore" | "resolve" | "release" | "edit") {
        return Err(Failure::no_page());
    }
    may(&app, &visitor, role, &id, &verb).await?;
    if verb == "edit" {
        return edit(&app, &visitor, &id, &form).await;
    }
    let reason = form.get("reason").trim();
    if verb != "restore" && reason.is_empty() {
        return Err(Failure::bad("say why: the reason stands in the audit"));
    }
    let actor = visitor.actor(reason);
    let said = match verb.as_str() {
        "discard" => app.store.discard(id.clone(), actor).await.map(|_| "discarded")?,
        "resolve" => app.store.resolve(id.clone(), actor).await.map(|_| "resolved")?,
        "release" => app.store.release(id.clone(), Release::Forced, actor).await.map(|_| "released")?,
        _ => {
            let more = form.get("more_replays").trim().parse();
            let more = more.map_err(|_| Failure::bad("`more_replays` is no number"))?;
            app.store.restore(id.clone(), more, actor).await.map(|_| "restored")?
        }
    };
    Ok(done(&app, &id, said))
}

fn done(app: &App, id: &str, said: &str) -> Response<Body> {
    app.facts.stale();
    app.live.changed();
    let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    redirect(&address(&app.path(&format!("/letters/{id}")), &[("said", said)]))
}

/// First the payload as it is, then what was typed beside what it changes, then the revision.
async fn edit(app: &App, visitor: &Visitor, id: &str, form: &Params) -> Result<Response<Body>, Failure> {
    let detail = find(app, id.to_owned()).await?;
    let old = match &detail.payload {
        Payload::Json(json) => json.as_str(),
        _ => "",
    };
    if old.len() > payload::EDITABLE {
        return Err(Failure::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "this payload is too large for a page: use `dlq edit`",
        ));
    }
    if !form.has("step") {
        let said = format!("in full, to edit it, revision {}", detail.row.payload_revision);
        app.record(Incident::PayloadShown, Some(id), said, visitor.actor("")).await;
        let text = payload::with_escapes(&payload::in_lines(old));
        let base = detail.row.payload_revision;
        return Ok(form_of(app, visitor, &detail, base, text, "", String::new(), Vec::new()));
    }
    // Browsers end every line with both.
    let new = form.get("payload").replace("\r\n", "\n").trim().to_owned();
    let base = form.get("base").parse().map_err(|_| Failure::bad("`base` is no revision"))?;
    let reason = form.get("reason").trim();
    let edit = Edit::new(id, base, new.clone());
    let again = |error: String, diff| {
        // What was typed means the same with JSON's own escapes, and nothing of it turns around.
        let typed = payload::with_escapes(&new);
        let mut response = form_of(app, visitor, &detail, base, typed, reason, error, diff);
        *response.status_mut() = StatusCode::OK;
        response
    };
    if new.len() > payload::EDITABLE {
        let error = format!(
            "{} are too much for a page: at most {}",
            shown::bytes(new.len() as u64),
            shown::bytes(payload::EDITABLE as u64)
        );
        return Ok(again(error, Vec::new()));
    }
    if let Err(error) = edit.check() {
        return Ok(again(shown::line(&error.to_string(), 600), Vec::new()));
    }
    if form.get("step") == "save" {
        return match app.store.edit(edit, visitor.actor(reason)).await {
            Ok(edited) => Ok(done(app, id, if edited.is_changed { "edited" } else { "same" })),
            Err(error) => Ok(again(shown::line(&error.to_string(), 600), diff(old, &new))),
        };
    }
    Ok(again(String::new(), diff(old, &new)))
}

fn diff(old: &str, new: &str) -> Vec<(&'static str, String)> {
    let diff = if old.is_empty() { format!("+ (all): {new}") } else { PayloadDiff::between(old, new).to_string() };
    let mut lines: Vec<_> = diff
        .lines()
        .take(LINES)
        .map(|line| {
            let kind = match line.chars().next() {
                Some('+') => "added",
                Some('-') => "removed",
                Some('~') => "changed",
                _ => "same",
            };
            (kind, shown::line(line, 600))
        })
        .collect();
    if diff.lines().count() > LINES {
        lines.push(("same", format!("… and {} lines more", diff.lines().count() - LINES)));
    }
    lines
}

#[allow(clippy::too_many_arguments, reason = "each is a part of the page")]
fn form_of(
    app: &App,
    visitor: &Visitor,
    detail: &LetterDetail,
    base_revision: u32,
    text: String,
    reason: &str,
    error: String,
    diff: Vec<(&'static str, String)>,
) -> Response<Body> {
    html(&Page {
        chrome: Chrome::new(app, visitor, "Letters", "Edit"),
        id: detail.row.letter_id.clone(),
        job: shown::line(&detail.row.job_id, 200),
        base_revision,
        text,
        reason: reason.to_owned(),
        error,
        diff,
    })
}
