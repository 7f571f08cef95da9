//! Attempts per key.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use retry_runtime::ledger::{AttemptLedger as _, LedgerBooks as _, LedgerEntry, LedgerKey, LedgerQuery, LedgerStatus};

use super::super::app::{App, Visitor};
use super::super::failure::{Failure, html};
use super::super::guard::{self, Form, redirect};
use super::super::identity::Role;
use super::super::params::{Asked, address};
use super::super::shown;
use super::Chrome;

/// Scopes that are offered.
const SCOPES: usize = 500;

struct Row {
    key: String,
    shown: String,
    status: &'static str,
    attempts: u32,
    next_at: String,
    first: String,
    last: String,
}

#[derive(Template)]
#[template(path = "ledger.html")]
struct Page {
    chrome: Chrome,
    /// As they are, and as they are shown.
    scopes: Vec<(String, String)>,
    here: String,
    status: &'static str,
    counts: String,
    may_reset: bool,
    entries: Vec<Row>,
    next: String,
}

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Result<Response<Body>, Failure> {
    let mut scopes = app.store.scopes().await?;
    scopes.truncate(SCOPES);
    let here =
        if asked.has("scope") { asked.get("scope").to_owned() } else { scopes.first().cloned().unwrap_or_default() };
    let status = LedgerStatus::parse(asked.get("status"));
    let after = Some(asked.get("after").to_owned()).filter(|after| !after.is_empty());
    let mut query = LedgerQuery::of(here.clone()).after(after).limit(50);
    query.status = status;
    let found = app.store.page(query).await?;
    let counts = app.store.counts(here.clone()).await?;
    let word = status.map_or("", LedgerStatus::as_str);
    let next =
        found.next.map(|next| address(&app.path("/ledger"), &[("scope", &here), ("status", word), ("after", &next)]));
    let chrome = Chrome::new(&app, &visitor, "Ledger", "Ledger").said(asked.get("said"));
    let now = app.now();
    let row = |entry: &LedgerEntry| Row {
        key: entry.key.key.clone(),
        shown: shown::line(&entry.key.key, 300),
        status: entry.status.as_str(),
        attempts: entry.attempts,
        next_at: entry.next_at.map(|at| shown::ago(at, now)).unwrap_or_default(),
        first: shown::ago(entry.first_seen, now),
        last: shown::ago(entry.last_seen, now),
    };
    Ok(html(&Page {
        may_reset: chrome.is_admin,
        chrome,
        scopes: scopes.into_iter().map(|scope| (scope.clone(), shown::line(&scope, 200))).collect(),
        here,
        status: word,
        counts: format!(
            "{} open, {} ok, {} gone",
            shown::number(counts.open),
            shown::number(counts.ok),
            shown::number(counts.gone)
        ),
        entries: found.entries.iter().map(row).collect(),
        next: next.unwrap_or_default(),
    }))
}

/// Opens a key again.
pub(in super::super) async fn reset(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(Form(form)): Extension<Form>,
) -> Result<Response<Body>, Failure> {
    let key = LedgerKey::new(form.get("scope"), form.get("key"));
    guard::require(&app, &visitor, Role::Admin, None, &format!("reset {}", shown::line(&key.to_string(), 300))).await?;
    if form.get("reason").trim().is_empty() {
        return Err(Failure::bad("say why: the reason stands in the audit"));
    }
    let scope = key.scope.clone();
    app.store.reset(key, visitor.actor(form.get("reason"))).await?.ok_or_else(|| Failure::missing("such key"))?;
    Ok(redirect(&address(&app.path("/ledger"), &[("scope", &scope), ("said", "reset")])))
}
