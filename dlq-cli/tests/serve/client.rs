//! A browser without a screen: follows nothing, keeps cookies, finds the token of a form.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use dlq_cli::serve::{Dashboard, Identity, Role};
use retry_runtime::attempt::AttemptRecord;
use retry_runtime::dead_letter::{
    DeadLetter, DeadLetterSink, DeadLetterStore, EventQuery, Filter, LetterRow, MemoryStore, PageRequest, Payload,
};
use retry_runtime::{Disposition, StopReason};
use tower::ServiceExt;

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The page has it.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Self {
        assert!(self.body.contains(text), "no `{text}` in {} {}", self.status, self.body);
        self
    }

    #[track_caller]
    pub(crate) fn lacks(&self, text: &str) -> &Self {
        assert!(!self.body.contains(text), "`{text}` in {} {}", self.status, self.body);
        self
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> &Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self
    }

    /// The token of the page's forms.
    #[track_caller]
    pub(crate) fn csrf(&self) -> String {
        let (_, rest) =
            self.body.split_once("name=\"csrf\" value=\"").unwrap_or_else(|| panic!("no form: {}", self.body));
        rest.split('"').next().unwrap().to_owned()
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    router: Router,
    /// A page that has a form.
    pub(crate) forms_at: String,
    pub(crate) cookies: BTreeMap<String, String>,
    pub(crate) headers: BTreeMap<String, String>,
}

impl Client {
    pub(crate) fn new(router: Router) -> Self {
        let headers = [("host", "127.0.0.1:7000"), ("accept", "text/html")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { router, forms_at: "/letters".to_owned(), cookies: BTreeMap::new(), headers: headers.into() }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    async fn send(&mut self, method: &str, path: &str, body: String) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if !self.cookies.is_empty() {
            let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header("cookie", cookies.join("; "));
        }
        if method == "POST" && !self.headers.contains_key("content-type") {
            request = request.header("content-type", "application/x-www-form-urlencoded");
        }
        let response = self.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        for cookie in parts.headers.get_all("set-cookie") {
            let (name, value) = cookie.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        let body = to_bytes(body, 32 << 20).await.unwrap();
        let answer =
            Answer { status: parts.status, headers: parts.headers, body: String::from_utf8(body.to_vec()).unwrap() };
        check(path, &answer);
        answer
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, String::new()).await
    }

    /// A page that is there.
    pub(crate) async fn page(&mut self, path: &str) -> Answer {
        let answer = self.get(path).await;
        answer.is(200);
        answer
    }

    pub(crate) async fn request(&mut self, method: &str, path: &str, body: &str) -> Answer {
        self.send(method, path, body.to_owned()).await
    }

    /// A form exactly as given.
    pub(crate) async fn raw(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.send("POST", path, body).await
    }

    /// A form of this page, with its token.
    pub(crate) async fn submit(&mut self, page: &Answer, path: &str, fields: &[(&str, &str)]) -> Answer {
        let csrf = page.csrf();
        let fields: Vec<_> = fields.iter().copied().chain([("csrf", csrf.as_str())]).collect();
        self.raw(path, &fields).await
    }

    /// A form whose token any page would do for.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let at = self.forms_at.clone();
        let page = self.page(&at).await;
        self.submit(&page, path, fields).await
    }
}

/// What holds for every response, whatever it is.
#[track_caller]
fn check(path: &str, answer: &Answer) {
    let policy = answer.header("content-security-policy");
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(rule), "{path}: {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{path}: {policy}");
    assert_eq!(answer.header("cache-control"), "no-store", "{path}");
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
    assert_eq!(answer.header("referrer-policy"), "same-origin", "{path}");
    if !answer.header("content-type").starts_with("text/html") {
        return;
    }
    // Nothing inline, and nothing of elsewhere.
    for tag in answer.body.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap_or_default().to_lowercase();
        let names: String = tag.split('"').step_by(2).collect();
        for inline in [" style=", " on", " hx-on"] {
            assert!(!names.contains(inline), "{path}: {tag}");
        }
        assert!(!tag.contains("=\"javascript:"), "{path}: {tag}");
        assert!(!tag.starts_with("style"), "{path}: {tag}");
        assert!(!tag.starts_with("script") || tag.starts_with("script defer src=\""), "{path}: {tag}");
        for place in ["src=\"", "href=\"", "action=\""] {
            for link in tag.split(place).skip(1) {
                let inside = link.starts_with('#') || link.starts_with('/') && !link.starts_with("//");
                assert!(inside, "{path}: {tag}");
            }
        }
    }
    for script in answer.body.split("<script").skip(1) {
        assert!(script.split_once('>').is_some_and(|(_, rest)| rest.starts_with("</script>")), "{path}: {script}");
    }
}

pub(crate) fn letter(kind: &str, job: &str, class: &str) -> DeadLetter {
    let now = SystemTime::now();
    let mut letter = DeadLetter::new(kind, StopReason::Exhausted, now);
    letter.job_id = Some(job.to_owned());
    letter.disposition = Disposition::Retryable;
    letter.class = Some(class.to_owned());
    letter.error_type = "shop::FetchError".into();
    letter.error_message = format!("no answer of {kind}: {class}");
    letter.payload = Payload::Json(format!(r#"{{"job":"{job}","password":"hunter2","page":7}}"#));
    letter.attempts = 3;
    for attempt in 1..=3 {
        let took = std::time::Duration::from_millis(1_250);
        letter.history.push(AttemptRecord::new(
            attempt,
            now,
            took,
            class.to_owned(),
            Some(504),
            &format!("no answer of {kind}: {class}"),
        ));
    }
    letter
}

pub(crate) async fn park(store: &dyn DeadLetterSink, letter: DeadLetter) {
    let parking = store.submit(letter).await;
    assert!(parking.is_kept(), "{parking}");
}

pub(crate) async fn one(store: &dyn DeadLetterStore, job: &str) -> LetterRow {
    let mut filter = Filter::all();
    filter.job_ids.push(job.to_owned());
    store.list(filter, PageRequest::default()).await.unwrap().rows.into_iter().next().unwrap()
}

/// 30 letters of three failures.
pub(crate) async fn store() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    for n in 0..20 {
        park(&*store, letter("fetch", &format!("page-{n}"), "timeout")).await;
    }
    for n in 20..28 {
        park(&*store, letter("fetch", &format!("page-{n}"), "rate_limit")).await;
    }
    for n in 28..30 {
        park(&*store, letter("summarise", &format!("page-{n}"), "timeout")).await;
    }
    store
}

pub(crate) fn dashboard(store: &Arc<MemoryStore>) -> Dashboard {
    Dashboard::new(Arc::clone(store)).named("/var/lib/shop/jobs.db").open_to(Identity::new("ann", Role::Admin))
}

/// The client of a dashboard, who knows where a form is.
pub(crate) async fn client(store: &Arc<MemoryStore>, dashboard: Dashboard) -> Client {
    let mut client = Client::new(dashboard.router());
    client.forms_at = format!("/letters/{}", one(&**store, "page-0").await.letter_id);
    client
}

/// Somebody who may do everything.
pub(crate) async fn acting(store: &Arc<MemoryStore>) -> Client {
    client(store, dashboard(store).allow_actions(true)).await
}

/// The words of the newest events, the newest first.
pub(crate) async fn events(store: &dyn DeadLetterStore, most: u32) -> Vec<(String, String, String)> {
    let events = store.events(EventQuery::all().limit(most)).await.unwrap().events;
    let text = |text: Option<String>| text.unwrap_or_default();
    events
        .into_iter()
        .map(|event| (event.what, text(event.actor), format!("{}|{}", text(event.reason), event.detail)))
        .collect()
}
