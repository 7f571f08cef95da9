//! Changes as they happen: a stream of server-sent events for every page that is open, fed by one look every two seconds.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract;
use axum::http::{HeaderValue, Response, StatusCode, header};
use futures_util::stream;
use retry_runtime::dead_letter::{BulkOperations as _, DeadLetterStore as _, EventQuery};
use tokio::sync::watch;

use super::app::App;

/// So many pages are told at once. Others can be read, and are not told.
const STREAMS: usize = 128;

/// How often the store is looked at while anybody is told.
const LOOK: Duration = Duration::from_secs(2);

/// A word at least so often, so that nobody in between thinks that it is over.
const WORD: Duration = Duration::from_secs(15);

pub(super) struct Live {
    changes: watch::Sender<u64>,
    looking: Mutex<bool>,
}

impl Default for Live {
    fn default() -> Self {
        Self { changes: watch::Sender::new(0), looking: Mutex::new(false) }
    }
}

impl Live {
    /// Something was changed here: nobody waits for the next look.
    pub(super) fn changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }

    fn look(app: &Arc<App>) {
        let mut looking = app.live.looking.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *looking, true) {
            return;
        }
        let app = Arc::clone(app);
        tokio::spawn(async move {
            // What pages show now may be older than this moment.
            let mut before = app.facts.state();
            loop {
                let now = state(&app).await;
                if now.is_some() && now != before {
                    before = now;
                    app.facts.noticed();
                    app.live.changed();
                }
                tokio::time::sleep(LOOK).await;
                {
                    let mut looking = app.live.looking.lock().unwrap_or_else(PoisonError::into_inner);
                    if app.live.changes.receiver_count() == 0 {
                        *looking = false;
                        return;
                    }
                }
            }
        });
    }
}

/// What tells that something has changed.
pub(super) type State = (String, Option<u64>, Vec<String>);

/// It is asked by questions that cost nothing.
pub(super) async fn state(app: &App) -> Option<State> {
    let summary = app.store.summary().await.ok()?;
    let events = app.store.events(EventQuery::all().limit(1)).await.ok()?;
    let operations = app.store.operations(None, 10).await.ok()?;
    let operations: Vec<_> = operations.iter().map(ToString::to_string).collect();
    Some((summary.to_string(), events.events.first().map(|event| event.id), operations))
}

pub(super) async fn stream(extract::State(app): extract::State<Arc<App>>) -> Response<Body> {
    let mut response = Response::default();
    let Some(streaming) = App::open_stream(&app, STREAMS) else {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        return response;
    };
    let changes = app.live.changes.subscribe();
    Live::look(&app);
    let events = stream::unfold((changes, streaming, true), |(mut changes, streaming, first)| async move {
        let word = if first {
            // How long a page waits before it asks again, when the connection is lost.
            Bytes::from_static(b"retry: 2000\nevent: hello\ndata: 0\n\n")
        } else {
            match tokio::time::timeout(WORD, changes.changed()).await {
                Ok(Ok(())) => Bytes::from(format!("event: change\ndata: {}\n\n", *changes.borrow_and_update())),
                Ok(Err(_)) => return None,
                Err(_) => Bytes::from_static(b": still here\n\n"),
            }
        };
        Some((Ok::<_, Infallible>(word), (changes, streaming, false)))
    });
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    *response.body_mut() = Body::from_stream(events);
    response
}
