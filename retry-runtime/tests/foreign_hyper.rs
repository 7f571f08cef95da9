//! Verdicts about hyper's errors, from real connections.
#![cfg(feature = "hyper")]
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may fail

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Error as HyperError, Request};
use hyper_util::rt::TokioIo;
use retry_runtime::Disposition::{Permanent, Retryable, Unknown};
use retry_runtime::classify::of_chain;
use retry_runtime::{Classify, Disposition};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

async fn connected<B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static>()
-> (SendRequest<B>, DuplexStream) {
    let (ours, theirs) = duplex(4096);
    let (sender, connection) = handshake(TokioIo::new(ours)).await.unwrap();
    tokio::spawn(connection);
    (sender, theirs)
}

/// What the client is told when the server reads the request, answers this, and closes.
async fn failure(answer: &'static str) -> HyperError {
    let (mut sender, mut server) = connected::<String>().await;
    tokio::spawn(async move {
        let _read = server.read(&mut [0; 1024]).await;
        server.write_all(answer.as_bytes()).await
    });
    sender.send_request(Request::new(String::new())).await.expect_err("the request succeeded")
}

fn parts(error: &HyperError) -> (Disposition, &'static str, bool) {
    let verdict = error.classify();
    (verdict.disposition, verdict.class, verdict.outcome_unknown)
}

#[tokio::test]
async fn a_connection_lost_after_the_request_may_have_done_the_work() {
    let error = failure("").await;
    assert!(error.is_incomplete_message());
    assert_eq!(parts(&error), (Retryable, "connection", true));
    let wrapped: Box<dyn Error + Send + Sync> = Box::new(io::Error::other(error));
    assert_eq!(of_chain(&*wrapped).class, "connection", "also when wrapped again");
}

#[tokio::test]
async fn an_answer_that_is_no_http() {
    assert_eq!(parts(&failure("garbage\r\n\r\n").await), (Retryable, "connection", true));
}

#[tokio::test]
async fn a_request_that_was_never_sent() {
    let (mut sender, server) = connected::<String>().await;
    drop(server);
    tokio::task::yield_now().await;
    let error = sender.send_request(Request::new(String::new())).await.unwrap_err();
    assert!(error.is_canceled(), "{error:?}");
    assert_eq!(parts(&error), (Retryable, "connection", false));
}

/// A body whose source fails.
struct Torn(io::ErrorKind);

impl Body for Torn {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(Some(Err(self.0.into())))
    }
}

#[tokio::test]
async fn the_callers_own_body_is_asked_why_it_failed() {
    for (kind, disposition, class) in [
        (io::ErrorKind::NotFound, Permanent, "not_found"),
        (io::ErrorKind::TimedOut, Retryable, "timeout"),
        (io::ErrorKind::Other, Unknown, "body"),
    ] {
        let (mut sender, _server) = connected::<Torn>().await;
        let request = Request::post("/").body(Torn(kind)).unwrap();
        let error = sender.send_request(request).await.unwrap_err();
        assert!(error.is_user(), "{error:?}");
        assert_eq!(parts(&error), (disposition, class, true), "{kind:?}");
    }
}
