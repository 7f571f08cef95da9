//! Verdicts about reqwest's errors, from real sockets.
#![cfg(feature = "reqwest")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail

use std::error::Error;
use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use retry_runtime::Disposition::{Gone, Permanent, Retryable};
use retry_runtime::classify::of_chain;
use retry_runtime::{Classify, Disposition, Verdict};

// What the server fails to read or write shows at the client; its own outcomes are dropped.

/// A server that does `answer` with every connection; its address.
fn server(answer: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(answer));
    format!("http://{address}/")
}

/// Reads the request, writes `reply`, closes.
fn replying(reply: &'static str) -> String {
    server(move |mut stream| {
        read_head(&mut stream);
        drop(stream.write_all(reply.as_bytes()));
    })
}

fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.extend(byte);
    }
}

fn builder() -> reqwest::ClientBuilder {
    // With the examples' features reqwest leaves the choice of a TLS provider to the program; the first choice counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().no_proxy()
}

fn client() -> reqwest::Client {
    builder().build().unwrap()
}

async fn failure(url: &str) -> reqwest::Error {
    let outcome = async { client().get(url).send().await?.error_for_status()?.bytes().await };
    outcome.await.expect_err("the request succeeded")
}

fn parts(error: &reqwest::Error) -> (Disposition, &'static str, bool) {
    let Verdict { disposition, class, outcome_unknown, .. } = error.classify();
    (disposition, class, outcome_unknown)
}

#[tokio::test]
async fn a_status_is_judged_by_the_http_table() {
    let unavailable = failure(&replying("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n")).await;
    assert_eq!(unavailable.classify(), Verdict::retryable("unavailable").code(503));
    let gone = failure(&replying("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n")).await;
    assert_eq!((gone.classify().disposition, gone.classify().code), (Gone, Some(404)));
}

#[tokio::test]
async fn a_refused_connection_sent_nothing() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = failure(&format!("http://{address}/")).await;
    assert_eq!(parts(&error), (Retryable, "connection", false));
}

#[tokio::test]
async fn a_reset_before_the_answer() {
    // Closing with the request unread makes the kernel reset the connection.
    let error = failure(&server(|stream| {
        let mut first = [0];
        drop(stream.peek(&mut first));
    }))
    .await;
    assert_eq!(parts(&error), (Retryable, "connection", true));
    let deep: Box<dyn Error + Send + Sync> = Box::new(std::io::Error::other(error));
    assert_eq!(deep.classify(), Verdict::retryable("connection").outcome_unknown(), "also when wrapped again");
}

#[tokio::test]
async fn a_connection_closed_without_an_answer() {
    let error = failure(&replying("")).await;
    assert_eq!(parts(&error), (Retryable, "connection", true));
}

#[tokio::test]
async fn a_body_torn_in_the_middle() {
    let error = failure(&replying("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this")).await;
    assert_eq!(parts(&error), (Retryable, "connection", true));
    let reset = failure(&server(|mut stream| {
        let mut first = [0];
        drop(stream.peek(&mut first));
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this"));
    }))
    .await;
    assert_eq!(parts(&reset), (Retryable, "connection", true));
}

#[tokio::test]
async fn an_answer_that_is_no_http() {
    assert_eq!(parts(&failure(&replying("garbage\r\n\r\n")).await), (Retryable, "connection", true));
    let chunk = failure(&replying("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")).await;
    assert_eq!(parts(&chunk), (Retryable, "connection", true));
}

#[tokio::test]
async fn a_timeout_may_have_done_the_work() {
    let url = server(|mut stream| {
        read_head(&mut stream);
        // Held open until the client goes.
        drop(stream.read(&mut [0]));
    });
    let client = builder().timeout(Duration::from_millis(50)).build().unwrap();
    let error = client.get(url).send().await.unwrap_err();
    assert_eq!(parts(&error), (Retryable, "timeout", true));
}

#[tokio::test]
async fn redirects_without_end_are_permanent() {
    let url = replying("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    assert_eq!(parts(&failure(&url).await), (Permanent, "redirect", false));
}

#[tokio::test]
async fn a_request_that_cannot_be_built_is_permanent() {
    assert_eq!(parts(&failure("no url").await), (Permanent, "invalid_request", false));
}

/// Its own source, for ever.
#[derive(Debug)]
struct Circle;

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("circle")
    }
}

impl Error for Circle {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self)
    }
}

struct Nowhere;

impl reqwest::dns::Resolve for Nowhere {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        Box::pin(std::future::ready(Err(Circle.into())))
    }
}

// 5.5
#[tokio::test]
async fn a_circle_among_the_causes_ends() {
    let client = builder().dns_resolver(Arc::new(Nowhere)).build().unwrap();
    let error = client.get("http://circle.invalid/").send().await.unwrap_err();
    assert_eq!(error.classify().disposition, Retryable);
    assert_eq!(of_chain(&error).disposition, Retryable);
}
