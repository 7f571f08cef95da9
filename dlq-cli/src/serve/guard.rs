//! The door: every request comes through here, and every response leaves through here.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::Next;
use retry_runtime::dead_letter::{Actor, Incident};

use super::app::{Access, App, Visitor};
use super::failure::{self, Failure};
use super::identity::Identity;
use super::params::{Params, address};
use super::tokens::{random, same};

/// The longest address, in bytes.
const LONGEST_ADDRESS: usize = 8 << 10;

/// The largest form; an edited payload comes in one.
const LARGEST_FORM: usize = 1 << 20;

/// No answer takes longer.
const LONGEST: Duration = Duration::from_secs(15);

/// A form comes within this time.
const LONGEST_FORM: Duration = Duration::from_secs(10);

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The cookie that ties forms to a browser.
const FORMS: &str = "dlq_forms";

/// The cookie of a session.
pub(super) const SESSION: &str = "dlq_session";

/// A form that came with a request, read and found to be of ours.
#[derive(Clone, Debug, Default)]
pub(super) struct Form(pub(super) Params);

pub(super) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response<Body> {
    let begun = Instant::now();
    let (parts, body) = request.into_parts();
    let cookie = cookie(&parts.headers, FORMS).filter(|value| is_ours(value)).map(str::to_owned);
    let is_new = cookie.is_none();
    let result = match cookie.map_or_else(random, Ok) {
        Ok(forms) => {
            let answer = pass(&app, parts, body, next, &forms);
            let answer = tokio::time::timeout(LONGEST, answer).await;
            answer.unwrap_or_else(|_| Err(Failure::slow())).map(|response| (response, forms))
        }
        Err(why) => Err(Failure::unavailable(why)),
    };
    let mut response = match result {
        Ok((mut response, forms)) => {
            if let Some(failure) = response.extensions_mut().remove::<Failure>() {
                response = failure::page(&app, &failure);
            }
            if is_new {
                set_cookie(&app, response.headers_mut(), FORMS, &forms, None);
            }
            response
        }
        Err(failure) => failure::page(&app, &failure),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Not `no-referrer`: browsers then hide where a form comes from from us, too.
        (header::REFERRER_POLICY, "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let took = format!("total;dur={:.1}", begun.elapsed().as_secs_f64() * 1_000.0);
    if let Ok(took) = HeaderValue::from_str(&took) {
        headers.insert("server-timing", took);
    }
    response
}

/// The checks, in the order in which they tell least to whoever has no business here.
async fn pass(app: &Arc<App>, parts: Parts, body: Body, next: Next, forms: &str) -> Result<Response<Body>, Failure> {
    if parts.uri.to_string().len() > LONGEST_ADDRESS {
        return Err(Failure::new(
            StatusCode::URI_TOO_LONG,
            format!("the address is longer than {LONGEST_ADDRESS} bytes"),
        ));
    }
    check_host(app, &parts.headers)?;
    let path = within(app, parts.uri.path()).to_owned();
    let is_form = parts.method == Method::POST;
    if !is_form && !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, "accepted are GET, HEAD and POST"));
    }
    let is_login = path == "/login";
    let (identity, by_bearer) = identify(app, &parts).await;
    let name = identity.as_ref().map_or("", |identity| identity.name.as_str()).to_owned();
    if is_form {
        check_origin(&parts.headers)?;
    }
    let form = if is_form { read(&parts.headers, body).await? } else { Params::default() };
    let csrf = app.csrf(forms, &name);
    if is_form && !by_bearer && !same(form.get("csrf"), &csrf) {
        let detail = format!("POST {path}: the form was not made by this dashboard for this visitor");
        app.refuse(Incident::Refused, None, detail, if name.is_empty() { "nobody" } else { &name }).await;
        let why = "this form is too old, or not of this dashboard: go back, reload the page, and try again";
        return Err(Failure::forbidden(why));
    }
    let mut request = Request::from_parts(parts, Body::empty());
    let has_session = cookie(request.headers(), SESSION).is_some();
    match identity {
        Some(identity) => {
            request.extensions_mut().insert(Visitor { identity, csrf, has_session });
        }
        None if path.starts_with("/assets/") => {}
        None => {
            let Access::Tokens(_) = app.access else {
                return Err(Failure::forbidden("you are not one of those who may see this dashboard"));
            };
            if !is_login {
                return unknown(app, &request, is_form);
            }
            let nobody = Identity::new("", super::identity::Role::Viewer);
            request.extensions_mut().insert(Visitor { identity: nobody, csrf, has_session });
        }
    }
    request.extensions_mut().insert(Form(form));
    Ok(next.run(request).await)
}

/// Nobody is known: a browser is shown where to log in, a program is told.
fn unknown(app: &App, request: &Request, is_form: bool) -> Result<Response<Body>, Failure> {
    let wants_page = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if is_form || !wants_page.is_some_and(|accept| accept.contains("text/html")) {
        return Err(Failure::new(StatusCode::UNAUTHORIZED, "log in first, or send `Authorization: Bearer TOKEN`"));
    }
    let there = within(app, request.uri().path_and_query().map_or("/", |to| to.as_str()));
    let there = if there == "/" { "" } else { there };
    Ok(redirect(&address(&app.path("/login"), &[("next", there)])))
}

/// A path without what the dashboard is mounted at.
fn within<'a>(app: &App, path: &'a str) -> &'a str {
    path.strip_prefix(app.base.as_str()).filter(|rest| rest.starts_with('/')).unwrap_or("/")
}

pub(super) fn redirect(to: &str) -> Response<Body> {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

async fn identify(app: &App, parts: &Parts) -> (Option<Identity>, bool) {
    match &app.access {
        Access::Nobody => (None, false),
        Access::Everybody(identity) => (Some(identity.clone()), false),
        Access::Identified(identify) => (identify(parts), false),
        Access::Tokens(tokens) => {
            let bearer = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
            if let Some(token) = bearer.and_then(|value| value.strip_prefix("Bearer ")) {
                let found = tokens.identify(token.trim());
                if found.is_none() {
                    app.refuse(Incident::LoginRefused, None, "a bearer token of nobody".to_owned(), "nobody").await;
                }
                return (found, true);
            }
            (cookie(&parts.headers, SESSION).and_then(|secret| app.sessions.find(secret)), false)
        }
    }
}

/// A page of another site that has its own name point to this machine sends its own name here.
fn check_host(app: &App, headers: &HeaderMap) -> Result<(), Failure> {
    let Some(known) = &app.hosts else { return Ok(()) };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = without_port(host).to_ascii_lowercase();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    // An address is nobody's name.
    if name == "localhost"
        || address.parse::<IpAddr>().is_ok()
        || known.iter().any(|known| known.eq_ignore_ascii_case(&name))
    {
        return Ok(());
    }
    let why = "this dashboard is not known by that name: use its address, or start it with `--host NAME`";
    Err(Failure::new(StatusCode::MISDIRECTED_REQUEST, why))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

/// Browsers say from where a form was sent.
fn check_origin(headers: &HeaderMap) -> Result<(), Failure> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text("host").unwrap_or_default();
    let is_ours = match text("origin") {
        Some(origin) => origin.split_once("://").is_some_and(|(_, from)| from.eq_ignore_ascii_case(host)),
        None => matches!(text("sec-fetch-site"), None | Some("same-origin" | "none")),
    };
    if is_ours { Ok(()) } else { Err(Failure::forbidden("this form was sent by a page of another site")) }
}

async fn read(headers: &HeaderMap, body: Body) -> Result<Params, Failure> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_form = kind.split(';').next().is_some_and(|kind| kind.trim() == "application/x-www-form-urlencoded");
    if !is_form && !kind.is_empty() {
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "accepted are forms, url-encoded"));
    }
    let read = tokio::time::timeout(LONGEST_FORM, to_bytes(body, LARGEST_FORM)).await;
    let read = read.map_err(|_| Failure::new(StatusCode::REQUEST_TIMEOUT, "the form took too long to arrive"))?;
    let too_large =
        |_| Failure::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the form is larger than {LARGEST_FORM} bytes"));
    Ok(Params::parse(&read.map_err(too_large)?))
}

pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(known, _)| *known == name).map(|(_, value)| value).next()
}

fn is_ours(value: &str) -> bool {
    value.len() == 64 && value.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A cookie that scripts cannot read and other sites cannot send; `seconds` is `Some(0)` to take it away.
pub(super) fn set_cookie(app: &App, headers: &mut HeaderMap, name: &str, value: &str, seconds: Option<u64>) {
    let path = if app.base.is_empty() { "/" } else { &app.base };
    let secure = if app.secure { "; Secure" } else { "" };
    let age = seconds.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
    let cookie = format!("{name}={value}; Path={path}; HttpOnly; SameSite=Strict{secure}{age}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.append(header::SET_COOKIE, cookie);
    }
}

/// Refuses whoever may not, and writes that down.
pub(super) async fn require(
    app: &App,
    visitor: &Visitor,
    role: super::identity::Role,
    letter_id: Option<&str>,
    what: &str,
) -> Result<(), Failure> {
    let why = if !app.may_act {
        "this dashboard only reads: it was started without `--allow-actions`".to_owned()
    } else if !visitor.may(role) {
        format!("{} may not do that: it takes the role {}", visitor.identity.role.as_str(), role.as_str())
    } else {
        return Ok(());
    };
    app.refuse(Incident::Refused, letter_id, format!("{what}: {why}"), &visitor.identity.name).await;
    Err(Failure::forbidden(why))
}

/// Somebody came in, or was not let in.
pub(super) async fn note_login(app: &App, name: Option<&str>) {
    match name {
        Some(name) => app.record(Incident::LoggedIn, None, "by a token".to_owned(), Actor::new(name, "")).await,
        None => app.refuse(Incident::LoginRefused, None, "a token of nobody".to_owned(), "nobody").await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_ports() {
        let names = ["a:80", "a", "[::1]:80", "[::1]", "127.0.0.1:8080"].map(without_port);
        assert_eq!(names, ["a", "a", "[::1]", "[::1]", "127.0.0.1"]);
    }

    #[test]
    fn origins_are_compared_with_the_host() {
        let check = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            headers.insert("host", HeaderValue::from_static("127.0.0.1:7000"));
            for (name, value) in pairs {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            check_origin(&headers).is_ok()
        };
        assert!(
            check(&[]) && check(&[("origin", "http://127.0.0.1:7000")]) && check(&[("sec-fetch-site", "same-origin")])
        );
        for bad in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", "http://127.0.0.1:7001"),
            ("sec-fetch-site", "cross-site"),
        ] {
            assert!(!check(&[bad]), "{bad:?}");
        }
    }
}
