//! A local HTTP server that answers by a [`Plan`], remembers who asked, and can be repaired.

use std::collections::HashMap;
use std::future::{pending, ready};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::plan::{Plan, Reply};

/// A request that came in.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Whom the plan deals with: the prompt, `worker:URL` or `direct:PATH`.
    pub key: String,
    /// Path and query as asked.
    pub uri: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: String,
}

struct Shared {
    plan: Plan,
    repaired: AtomicBool,
    seen: Mutex<(HashMap<String, usize>, Vec<Seen>)>,
}

/// The running server; dropping it stops it.
pub struct Server {
    url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves on a free local port.
    pub async fn start(plan: Plan) -> io::Result<Self> {
        let shared = Arc::new(Shared { plan, repaired: AtomicBool::new(false), seen: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let router = Router::new()
            .route("/v1beta/models/{call}", post(generate))
            .route("/fetch", get(worker))
            .fallback(get(direct))
            .with_state(Arc::clone(&shared));
        // A connection closed before its answer is whole is reset, as a crashing server's would be.
        let listener = listener.tap_io(|connection| drop(connection.set_zero_linger()));
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("the local server stopped: {error}");
            }
        });
        Ok(Self { url, shared, task })
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The cause is fixed: from now on every answer is good.
    pub fn repair(&self) {
        self.shared.repaired.store(true, Ordering::Relaxed);
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// How often a key was asked for.
    pub fn asked(&self, key: &str) -> usize {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).0.get(key).copied().unwrap_or(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn next(&self, seen: Seen) -> Reply {
        let mut guard = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (counts, log) = &mut *guard;
        let count = counts.entry(seen.key.clone()).or_default();
        let reply = self.plan.reply(&seen.key, *count);
        *count += 1;
        log.push(seen);
        if self.repaired.load(Ordering::Relaxed) { Reply::Good(2_000) } else { reply }
    }
}

async fn generate(
    State(shared): State<Arc<Shared>>,
    Path(call): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let asked: Value = serde_json::from_str(&body).unwrap_or_default();
    let prompt = asked.pointer("/contents/0/parts/0/text").and_then(Value::as_str);
    let (Some(model), Some(prompt)) = (call.strip_suffix(":generateContent"), prompt) else {
        return google(400, "INVALID_ARGUMENT", "no such call, or no contents[0].parts[0].text", &[]);
    };
    let seen = Seen { key: prompt.to_owned(), uri: uri.to_string(), headers, body: body.clone() };
    let text = format!("{model} heard {} letters", prompt.len());
    let answer =
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]});
    act(shared.next(seen), |_| Json(answer.clone()).into_response()).await
}

#[derive(Deserialize)]
struct Fetch {
    url: String,
}

async fn worker(
    State(shared): State<Arc<Shared>>,
    Query(Fetch { url }): Query<Fetch>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let seen = Seen { key: format!("worker:{url}"), uri: uri.to_string(), headers, body: String::new() };
    act(shared.next(seen), image).await
}

async fn direct(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Response {
    let seen = Seen { key: format!("direct:{uri}"), uri: uri.to_string(), headers, body: String::new() };
    act(shared.next(seen), image).await
}

/// The PNG signature and as many zeros as wanted.
fn image(bytes: usize) -> Response {
    let mut body = b"\x89PNG\r\n\x1a\n".to_vec();
    body.resize(bytes.max(body.len()), 0);
    ([(header::CONTENT_TYPE, "image/png")], body).into_response()
}

async fn act(reply: Reply, good: impl Fn(usize) -> Response) -> Response {
    match reply {
        Reply::Good(bytes) => good(bytes),
        Reply::Google(code, status, message) => google(code, status, message, &[]),
        Reply::RetryInfo(delay) => google(
            429,
            "RESOURCE_EXHAUSTED",
            "Quota exceeded",
            &[json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})],
        ),
        Reply::RetryAfter(seconds) => {
            let answer = google(429, "RESOURCE_EXHAUSTED", "Too many requests", &[]);
            ([(header::RETRY_AFTER, seconds)], answer).into_response()
        }
        Reply::Status(code) => status(code).into_response(),
        Reply::Hang => pending().await,
        Reply::Cut => cut(),
        Reply::Html => Html("<html><body>Please sign in to the hotel network.</body></html>").into_response(),
    }
}

fn google(code: u16, name: &str, message: &str, details: &[Value]) -> Response {
    let error = json!({"error": {"code": code, "message": message, "status": name, "details": details}});
    (status(code), Json(error)).into_response()
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Promises a thousand bytes, sends a few, and resets the connection.
fn cut() -> Response {
    let start = stream::once(ready(Ok(Bytes::from_static(b"{\"candidates\": [{"))));
    let reset = stream::once(async {
        tokio::time::sleep(Duration::from_millis(20)).await; // the start is on its way by then
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    let body = Body::from_stream(start.chain(reset));
    ([(header::CONTENT_LENGTH, "1000")], body).into_response()
}
