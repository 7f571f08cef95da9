//! Coming in by a token, and going.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};

use super::super::app::{Access, App, Visitor};
use super::super::failure::{Failure, html};
use super::super::guard::{self, Form, SESSION, redirect, set_cookie};
use super::super::params::Asked;

#[derive(Template)]
#[template(path = "login.html")]
struct Page<'a> {
    base: &'a str,
    csrf: &'a str,
    next: &'a str,
    refused: bool,
}

pub(in super::super) async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Asked(asked): Asked,
) -> Response<Body> {
    if !matches!(app.access, Access::Tokens(_)) || !visitor.identity.name.is_empty() {
        return redirect(&app.path("/"));
    }
    html(&Page { base: &app.base, csrf: &visitor.csrf, next: inside(asked.get("next")), refused: false })
}

pub(in super::super) async fn log_in(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(Form(form)): Extension<Form>,
) -> Result<Response<Body>, Failure> {
    let Access::Tokens(tokens) = &app.access else { return Ok(redirect(&app.path("/"))) };
    let next = inside(form.get("next"));
    let Some(identity) = tokens.identify(form.get("token").trim()) else {
        guard::note_login(&app, None).await;
        let mut response = html(&Page { base: &app.base, csrf: &visitor.csrf, next, refused: true });
        *response.status_mut() = StatusCode::FORBIDDEN;
        return Ok(response);
    };
    guard::note_login(&app, Some(&identity.name)).await;
    let secret = app.sessions.begin(identity).map_err(Failure::unavailable)?;
    let mut response = redirect(&app.path(next));
    set_cookie(&app, response.headers_mut(), SESSION, &secret, None);
    Ok(response)
}

pub(in super::super) async fn log_out(State(app): State<Arc<App>>, headers: HeaderMap) -> Response<Body> {
    if let Some(secret) = guard::cookie(&headers, SESSION) {
        app.sessions.end(secret);
    }
    let mut response = redirect(&app.path("/"));
    set_cookie(&app, response.headers_mut(), SESSION, "", Some(0));
    response
}

/// A path of this dashboard, and of no other place.
fn inside(next: &str) -> &str {
    let is_path = next.starts_with('/') && !next.starts_with("//") && !next.contains(['\\', '\n', '\r', '\t']);
    if is_path && next.len() <= 4_000 { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        assert_eq!(inside("/letters?q=a"), "/letters?q=a");
        for bad in ["", "//evil.example", "https://evil.example", "/\\evil.example", "/a\nb"] {
            assert_eq!(inside(bad), "/", "{bad:?}");
        }
    }
}
