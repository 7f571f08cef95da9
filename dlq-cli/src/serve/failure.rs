//! What a page says that is none.

use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use retry_runtime::error::{StoreError, StoreErrorKind};

use super::app::App;
use super::shown;

/// Why there is no page.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    pub(super) why: String,
}

impl Failure {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }

    pub(super) fn forbidden(why: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, why)
    }

    pub(super) fn bad(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    pub(super) fn missing(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no {what} here: it may have been deleted by retention"))
    }

    pub(super) fn no_page() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no such page: the first page leads to all there are")
    }

    pub(super) fn unavailable(why: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }

    pub(super) fn slow() -> Self {
        Self::unavailable("the store did not answer in time: it may be busy; try again")
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let status = match error.kind() {
            StoreErrorKind::Invalid => StatusCode::BAD_REQUEST,
            StoreErrorKind::Conflict | StoreErrorKind::StaleLease => StatusCode::CONFLICT,
            StoreErrorKind::ReadOnly => StatusCode::FORBIDDEN,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

#[derive(Template)]
#[template(path = "failure.html")]
struct Page<'a> {
    base: &'a str,
    status: u16,
    what: &'a str,
    why: String,
}

/// The page that says so; without anything of the store.
pub(super) fn page(app: &App, failure: &Failure) -> Response<Body> {
    let what = failure.status.canonical_reason().unwrap_or("Error");
    let page = Page { base: &app.base, status: failure.status.as_u16(), what, why: shown::line(&failure.why, 2_000) };
    let mut response = html(&page);
    *response.status_mut() = failure.status;
    if failure.status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if failure.status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(Duration::from_secs(2).as_secs()));
    }
    response
}

/// A failure of a handler: the door makes a page of it.
impl IntoResponse for Failure {
    fn into_response(self) -> axum::response::Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A page that cannot say everything yet: the browser asks again by itself.
pub(super) fn soon(page: &impl Template) -> Response<Body> {
    let mut response = html(page);
    response.headers_mut().insert(header::REFRESH, HeaderValue::from_static("1"));
    response
}

/// A page.
pub(super) fn html(page: &impl Template) -> Response<Body> {
    let mut response = Response::default();
    match page.render() {
        Ok(text) => {
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            *response.body_mut() = Body::from(text);
        }
        Err(error) => {
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            *response.body_mut() = Body::from(format!("the page cannot be written: {error}"));
        }
    }
    response
}
