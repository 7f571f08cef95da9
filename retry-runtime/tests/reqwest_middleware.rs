//! The middleware for reqwest, against real sockets.
#![cfg(feature = "reqwest-middleware")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error};
use retry_runtime::observe::{Event, from_fn};
use retry_runtime::reqwest_middleware::RetryMiddleware;
use retry_runtime::{
    BreakerPhase, Budget, CircuitBreaker, Classify, Disposition, Policy, Refused, StatusRules, StopReason,
};

/// What arrived, as text.
type Seen = Arc<Mutex<Vec<String>>>;

/// Answers each connection with the next reply; an empty one hangs up.
fn server(replies: &[&'static str]) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (mut replies, seen) = (VecDeque::from(replies.to_vec()), Seen::default());
    let log = Arc::clone(&seen);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let request = read(&mut stream);
            log.lock().unwrap().push(request);
            drop(stream.write_all(replies.pop_front().unwrap_or("").as_bytes()));
        }
    });
    (format!("http://{address}/"), seen)
}

fn read(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    loop {
        let read = stream.read(&mut part).unwrap_or(0);
        request.extend(&part[..read]);
        let text = String::from_utf8_lossy(&request);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if read == 0 || (text.contains("\r\n\r\n") && body.len() >= length.unwrap_or(0)) {
            return text.into_owned();
        }
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ndone";
const BUSY: &str = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const NEVER: &str = "HTTP/1.1 400 Bad\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const NOT_YET: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const LATER: &str = "HTTP/1.1 429 Slow\r\nretry-after: 600\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

fn policy() -> Policy {
    Policy::new().base_delay(Duration::from_millis(1))
}

fn client(retries: impl reqwest_middleware::Middleware) -> ClientWithMiddleware {
    drop(rustls::crypto::ring::default_provider().install_default());
    ClientBuilder::new(reqwest::Client::builder().no_proxy().build().unwrap()).with(retries).build()
}

#[tokio::test]
async fn statuses_and_lost_connections_are_retried_with_the_body() {
    let (url, seen) = server(&[BUSY, "", OK]);
    let answer = client(RetryMiddleware::new(policy())).post(url).body("payload").send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "done");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|request| request.ends_with("\r\n\r\npayload")), "{seen:?}");
}

#[tokio::test]
async fn the_last_answer_is_returned_as_it_is() {
    for (replies, retries, status, sent) in
        [(&[BUSY; 9], 1, 503, 2), (&[NEVER; 9], 5, 400, 1), (&[LATER; 9], 5, 429, 1), (&[NOT_YET; 9], 5, 202, 1)]
    {
        let (url, seen) = server(replies);
        let answer = client(RetryMiddleware::new(policy().max_retries(retries))).get(url).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), seen.lock().unwrap().len()), (status, sent));
    }
}

#[tokio::test]
async fn rules_of_ones_own_may_name_a_success() {
    const RULES: StatusRules = StatusRules::HTTP.retryable(&[202, 503]);
    let (url, seen) = server(&[NOT_YET, OK]);
    let answer = client(RetryMiddleware::new(policy()).rules(RULES)).get(url).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), seen.lock().unwrap().len()), (200, 2));
}

#[tokio::test]
async fn a_lost_connection_is_not_repeated_where_the_work_must_be_done_once() {
    let (url, seen) = server(&["", OK]);
    let error = client(RetryMiddleware::new(policy()).idempotent(false)).get(url).send().await.unwrap_err();
    assert!(matches!(error, Error::Reqwest(_)) && error.classify().outcome_unknown);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_budget_and_a_breaker_are_shared_by_all_requests() {
    let budget = Arc::new(Budget::new().capacity(0));
    let (url, seen) = server(&[BUSY; 9]);
    let thrifty = client(RetryMiddleware::new(policy()).budget(Arc::clone(&budget)));
    assert_eq!(thrifty.get(&url).send().await.unwrap().status(), 503);
    assert_eq!((seen.lock().unwrap().len(), budget.denied()), (1, 1));

    let breaker = Arc::new(CircuitBreaker::new().min_calls(2));
    let guarded = client(RetryMiddleware::new(policy()).breaker(breaker));
    assert_eq!(guarded.get(&url).send().await.unwrap().status(), 503, "it opened, and the last answer is there");
    let error = guarded.get(&url).send().await.unwrap_err();
    let Error::Middleware(refused) = &error else { panic!("{error:?}") };
    assert_eq!(refused.downcast_ref::<Refused>().map(Refused::reason), Some(StopReason::BreakerOpen));
    assert_eq!(error.classify().disposition, Disposition::Permanent);
    assert_eq!(seen.lock().unwrap().len(), 3);
}

// 7.1: a first success pays in, the last retry before a success gets its own back, a failure for good gets nothing
#[tokio::test]
async fn requests_pay_into_the_budget_and_are_refunded() {
    let budget = Arc::new(Budget::new().min_per_second(0).ratio(1.0));
    (0..5).for_each(|_| budget.succeeded());
    let (url, _) = server(&[OK, BUSY, BUSY, OK, BUSY, NEVER]);
    let client = client(RetryMiddleware::new(policy()).budget(Arc::clone(&budget)));
    for (status, left) in [(200, 6000), (200, 5000), (400, 4000)] {
        assert_eq!(client.get(&url).send().await.unwrap().status().as_u16(), status);
        assert_eq!(budget.milli_tokens(), left);
    }
}

// 8.1, 8.2: a permanent failure is no verdict, a success is one
#[tokio::test]
async fn a_breaker_is_told_what_came_of_a_request() {
    use BreakerPhase::{Closed, HalfOpen, Open};
    let breaker = Arc::new(CircuitBreaker::new().min_calls(1).probes(1).open_for(Duration::ZERO));
    let steps = [(NEVER, Closed), (BUSY, Open), (NEVER, HalfOpen), (OK, Closed)];
    let (url, _) = server(&steps.map(|(reply, _)| reply));
    let client = client(RetryMiddleware::new(policy().max_retries(0)).breaker(Arc::clone(&breaker)));
    for (_, phase) in steps {
        assert!(client.get(&url).send().await.is_ok());
        assert_eq!(breaker.phase(), phase);
    }
}

// 7.2, 8.2: a request that is dropped in its wait gives back what it took for the retry
#[tokio::test]
async fn a_dropped_request_gives_back_what_it_holds() {
    let budget = Arc::new(Budget::new().min_per_second(0).ratio(1.0));
    budget.succeeded();
    let breaker = Arc::new(CircuitBreaker::new().min_calls(1).probes(1).open_for(Duration::ZERO));
    let (url, _) = server(&[BUSY; 9]);
    let retries = RetryMiddleware::new(Policy::new().base_delay(Duration::from_secs(60)));
    let client = client(retries.budget(Arc::clone(&budget)).breaker(Arc::clone(&breaker)));
    let request = tokio::spawn(client.get(url).send());
    let takes = async {
        while budget.milli_tokens() > 0 {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), takes).await.is_ok(), "the retry takes its token");
    assert!(breaker.permit().is_err(), "the retry to come is its probe");
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    assert_eq!((budget.milli_tokens(), breaker.permit().is_ok()), (1000, true));
}

/// A body that is not there as a whole, and cannot be had twice.
struct Stream(Option<&'static str>);

impl hyper::body::Body for Stream {
    type Data = hyper::body::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        let part = self.0.take().map(|part| Ok(hyper::body::Frame::data(part.into())));
        std::task::Poll::Ready(part)
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.0.map_or(0, str::len) as u64)
    }
}

#[tokio::test]
async fn a_stream_is_sent_once() {
    let (url, seen) = server(&[BUSY, OK]);
    let body = reqwest::Body::wrap(Stream(Some("payload")));
    let answer = client(RetryMiddleware::new(policy())).post(url).body(body).send().await.unwrap();
    assert_eq!(answer.status(), 503);
    let seen = seen.lock().unwrap();
    assert!(seen.len() == 1 && seen[0].ends_with("payload"), "{seen:?}");
}

/// Counts requests on their way, by a number in the extensions.
struct Numbered(Arc<AtomicU32>);

#[derive(Clone)]
struct Number(u32);

impl reqwest_middleware::Middleware for Numbered {
    fn handle<'s, 'e, 'n, 'f>(
        &'s self,
        request: reqwest::Request,
        extensions: &'e mut http::Extensions,
        next: reqwest_middleware::Next<'n>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<reqwest::Response, Error>> + Send + 'f>>
    where
        's: 'f,
        'e: 'f,
        'n: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let number = extensions.get::<Number>().map_or(0, |number| number.0);
            extensions.insert(Number(number + 1));
            self.0.store(number + 1, SeqCst);
            next.run(request, extensions).await
        })
    }
}

#[tokio::test]
async fn what_is_inside_runs_for_each_attempt_and_sees_the_same_extensions() {
    let (url, seen) = server(&[BUSY, BUSY, OK]);
    let last = Arc::new(AtomicU32::new(0));
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = ClientBuilder::new(reqwest::Client::builder().no_proxy().build().unwrap())
        .with(RetryMiddleware::new(policy()))
        .with(Numbered(Arc::clone(&last)))
        .with_init(|request: reqwest_middleware::RequestBuilder| request.with_extension(Number(40)))
        .build();
    assert_eq!(client.get(url).send().await.unwrap().status(), 200);
    assert_eq!((seen.lock().unwrap().len(), last.load(SeqCst)), (3, 43));
}

fn streamed() -> reqwest::Body {
    reqwest::Body::wrap(Stream(Some("payload")))
}

// What cannot be sent twice is a call of one attempt like any other: the breaker is asked and hears, so does the observer,
// and a success pays into the budget.
#[tokio::test]
async fn a_stream_goes_through_the_engine() {
    let breaker = Arc::new(CircuitBreaker::new().min_calls(3));
    let budget = Arc::new(Budget::new().min_per_second(0).ratio(1.0));
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let observer = Arc::new(from_fn(move |event: &Event<'_>| tell.lock().unwrap().push(event.to_string())));
    let (url, seen) = server(&[OK, BUSY, BUSY, OK]);
    let retries = RetryMiddleware::new(policy()).name("upload").breaker(Arc::clone(&breaker));
    let client = client(retries.budget(Arc::clone(&budget)).observer(observer));
    let upload = || client.post(&url).body(streamed()).send();
    assert_eq!(upload().await.unwrap().status(), 200);
    assert_eq!(budget.milli_tokens(), 1000);
    assert_eq!(upload().await.unwrap().status(), 503);
    assert_eq!(breaker.phase(), BreakerPhase::Closed);
    assert_eq!(upload().await.unwrap().status(), 503);
    assert_eq!((breaker.phase(), budget.denied()), (BreakerPhase::Open, 0), "no retry was asked for");
    let error = upload().await.unwrap_err();
    let Error::Middleware(refused) = &error else { panic!("{error:?}") };
    assert_eq!(refused.downcast_ref::<Refused>().map(Refused::reason), Some(StopReason::BreakerOpen));
    assert_eq!(seen.lock().unwrap().len(), 3, "the fourth was not sent");
    let told = told.lock().unwrap();
    assert_eq!(told.iter().filter(|line| line.contains("attempt 1 of 1 started")).count(), 3, "{told:#?}");
    assert!(told.iter().any(|line| line.starts_with("upload: succeeded in ")), "{told:#?}");
    assert!(told.iter().any(|line| line.contains("(breaker_open)")), "{told:#?}");
}

/// Gives up on what is inside, and looks at what it has then.
struct Impatient(Arc<AtomicU32>);

impl reqwest_middleware::Middleware for Impatient {
    fn handle<'s, 'e, 'n, 'f>(
        &'s self,
        request: reqwest::Request,
        extensions: &'e mut http::Extensions,
        next: reqwest_middleware::Next<'n>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<reqwest::Response, Error>> + Send + 'f>>
    where
        's: 'f,
        'e: 'f,
        'n: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let inside = next.run(request, extensions);
            let given_up = tokio::time::timeout(Duration::from_millis(50), inside).await.is_err();
            assert!(given_up);
            self.0.store(extensions.get::<Number>().map_or(0, |number| number.0), SeqCst);
            Err(Error::middleware(std::io::Error::other("given up")))
        })
    }
}

// The caller's extensions are lent: also where the call is dropped, in an attempt or in a wait.
#[tokio::test]
async fn extensions_come_back_from_a_call_that_is_dropped() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs = format!("http://{}/", silent.local_addr().unwrap());
    let (busy, _seen) = server(&[BUSY; 9]);
    drop(rustls::crypto::ring::default_provider().install_default());
    let hour = Policy::new().base_delay(Duration::from_secs(3600)).max_delay(Duration::from_secs(3600));
    for (url, body) in [(&hangs, false), (&hangs, true), (&busy, false)] {
        let (found, counted) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let client = ClientBuilder::new(reqwest::Client::builder().no_proxy().build().unwrap())
            .with(Impatient(Arc::clone(&found)))
            .with(RetryMiddleware::new(hour))
            .with(Numbered(Arc::clone(&counted)))
            .build();
        let request = client.post(url).with_extension(Number(40));
        let request = if body { request.body(streamed()) } else { request };
        assert!(request.send().await.is_err());
        assert_eq!((found.load(SeqCst), counted.load(SeqCst)), (41, 41), "{url}, {body}");
    }
}

/// Fails with an error whose own text and class panic.
struct Broken;

#[derive(Debug)]
struct Unreadable;

impl std::fmt::Display for Unreadable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("unreadable")
    }
}

impl std::error::Error for Unreadable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        panic!("no source either")
    }
}

impl reqwest_middleware::Middleware for Broken {
    fn handle<'s, 'e, 'n, 'f>(
        &'s self,
        _: reqwest::Request,
        _: &'e mut http::Extensions,
        _: reqwest_middleware::Next<'n>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<reqwest::Response, Error>> + Send + 'f>>
    where
        's: 'f,
        'e: 'f,
        'n: 'f,
        Self: 'f,
    {
        Box::pin(async { Err(Error::middleware(Unreadable)) })
    }
}

// 5.3
#[tokio::test]
async fn an_error_that_panics_when_it_is_judged_is_returned_as_it_is() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = ClientBuilder::new(reqwest::Client::builder().no_proxy().build().unwrap())
        .with(RetryMiddleware::new(policy()))
        .with(Broken)
        .build();
    let error = client.get("http://127.0.0.1:9/").send().await.unwrap_err();
    let Error::Middleware(inner) = &error else { panic!("another error") };
    assert!(inner.downcast_ref::<Unreadable>().is_some());
}
