//! Verdicts about errors of the standard library and, by chains of sources, about errors of unknown type.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use retry_runtime::Disposition::{self, Permanent, Retryable, Unknown};
use retry_runtime::classify::{of_chain, of_chain_with};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::{Classify, Verdict};

/// A link of a chain, of a type that nobody knows.
#[derive(Debug)]
struct Link(Option<Box<dyn Error + Send + Sync>>);

impl Link {
    fn around(inner: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Some(inner.into()))
    }

    fn deep(depth: usize, inner: impl Into<Box<dyn Error + Send + Sync>>) -> Box<dyn Error + Send + Sync> {
        (0..depth).fold(inner.into(), |inner, _| Box::new(Self(Some(inner))))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("link")
    }
}

impl Error for Link {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_deref().map(|inner| inner as &(dyn Error + 'static))
    }
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

fn io_error(kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, "text")
}

fn short(verdict: Verdict) -> (Disposition, &'static str) {
    (verdict.disposition, verdict.class)
}

#[test]
fn every_kind_of_io_error() {
    use io::ErrorKind as Kind;
    let table = [
        (Kind::ConnectionReset, Retryable, "connection", true),
        (Kind::ConnectionAborted, Retryable, "connection", true),
        (Kind::BrokenPipe, Retryable, "connection", true),
        (Kind::UnexpectedEof, Retryable, "connection", true),
        (Kind::ConnectionRefused, Retryable, "connection", false),
        (Kind::NotConnected, Retryable, "connection", false),
        (Kind::HostUnreachable, Retryable, "connection", false),
        (Kind::NetworkUnreachable, Retryable, "connection", false),
        (Kind::NetworkDown, Retryable, "connection", false),
        (Kind::AddrNotAvailable, Retryable, "connection", false),
        (Kind::TimedOut, Retryable, "timeout", true),
        (Kind::WouldBlock, Retryable, "timeout", true),
        (Kind::AddrInUse, Retryable, "busy", false),
        (Kind::ResourceBusy, Retryable, "busy", false),
        (Kind::ExecutableFileBusy, Retryable, "busy", false),
        (Kind::Deadlock, Retryable, "busy", false),
        (Kind::Interrupted, Retryable, "interrupted", false),
        (Kind::StaleNetworkFileHandle, Retryable, "stale_handle", false),
        (Kind::OutOfMemory, Retryable, "out_of_memory", false),
        (Kind::StorageFull, Permanent, "storage_full", false),
        (Kind::QuotaExceeded, Permanent, "storage_full", false),
        (Kind::FileTooLarge, Permanent, "too_large", false),
        (Kind::NotFound, Permanent, "not_found", false),
        (Kind::PermissionDenied, Permanent, "permission_denied", false),
        (Kind::AlreadyExists, Permanent, "already_exists", false),
        (Kind::ReadOnlyFilesystem, Permanent, "read_only", false),
        (Kind::InvalidData, Permanent, "invalid_data", false),
        (Kind::Unsupported, Permanent, "not_supported", false),
        (Kind::InvalidInput, Permanent, "invalid_request", false),
        (Kind::NotADirectory, Permanent, "invalid_request", false),
        (Kind::IsADirectory, Permanent, "invalid_request", false),
        (Kind::DirectoryNotEmpty, Permanent, "invalid_request", false),
        (Kind::NotSeekable, Permanent, "invalid_request", false),
        (Kind::CrossesDevices, Permanent, "invalid_request", false),
        (Kind::TooManyLinks, Permanent, "invalid_request", false),
        (Kind::ArgumentListTooLong, Permanent, "invalid_request", false),
        (Kind::WriteZero, Unknown, "io", false),
        (Kind::Other, Unknown, "io", false),
    ];
    for (kind, disposition, class, outcome_unknown) in table {
        let verdict = io_error(kind).classify();
        assert_eq!(short(verdict), (disposition, class), "{kind:?}");
        assert_eq!(verdict.outcome_unknown, outcome_unknown, "{kind:?}");
        assert_eq!(io::Error::from(kind).classify(), verdict, "{kind:?} without a payload");
    }
}

#[cfg(unix)]
#[test]
fn too_many_open_files_pass() {
    for errno in [23, 24] {
        assert_eq!(short(io::Error::from_raw_os_error(errno).classify()), (Retryable, "busy"));
    }
}

#[test]
fn an_io_error_without_opinion_asks_its_payload() {
    let wrapped = io::Error::other(io_error(io::ErrorKind::ConnectionRefused));
    assert_eq!(short(wrapped.classify()), (Retryable, "connection"));
    let twice = io::Error::other(io::Error::other(Link::around(io_error(io::ErrorKind::TimedOut))));
    assert_eq!(short(twice.classify()), (Retryable, "timeout"));
    let opinion = io::Error::new(io::ErrorKind::NotFound, io_error(io::ErrorKind::TimedOut));
    assert_eq!(short(opinion.classify()), (Permanent, "not_found"), "the outermost opinion stands");
}

#[test]
fn other_errors_of_std() {
    let number = "x".parse::<u8>().unwrap_err();
    assert_eq!(short(number.classify()), (Permanent, "invalid_number"));
    assert_eq!(number.describe().as_deref(), Some("invalid digit found in string"));
    assert_eq!(short("x".parse::<f64>().unwrap_err().classify()), (Permanent, "invalid_number"));
    assert_eq!(short(u8::try_from(300_i32).unwrap_err().classify()), (Permanent, "invalid_number"));
    assert_eq!(short("x".parse::<bool>().unwrap_err().classify()), (Permanent, "invalid_text"));
    assert_eq!(short(String::from_utf8(vec![0xff]).unwrap_err().classify()), (Permanent, "invalid_text"));
    let not_utf8 = Vec::from([0xff_u8]);
    assert_eq!(short(std::str::from_utf8(&not_utf8).unwrap_err().classify()), (Permanent, "invalid_text"));
    assert_eq!(short(fmt::Error.classify()), (Permanent, "format"));
    let clock = std::time::UNIX_EPOCH.duration_since(std::time::UNIX_EPOCH + Duration::from_secs(1)).unwrap_err();
    assert_eq!(short(clock.classify()), (Permanent, "clock"));
    assert_eq!(short(Duration::try_from_secs_f64(-1.0).unwrap_err().classify()), (Permanent, "clock"));
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    assert_eq!(short(receiver.try_recv().unwrap_err().classify()), (Retryable, "empty"));
    drop(sender);
    assert_eq!(short(receiver.recv().unwrap_err().classify()), (Permanent, "closed"));
    let never: Result<u8, Infallible> = Ok(1);
    assert!(never.map_err(|never| never.classify()).is_ok());
}

#[test]
fn stores_say_what_may_pass() {
    for (kind, disposition) in [
        (StoreErrorKind::Busy, Retryable),
        (StoreErrorKind::Unavailable, Retryable),
        (StoreErrorKind::Full, Permanent),
        (StoreErrorKind::StaleLease, Permanent),
    ] {
        assert_eq!(StoreError::new(kind, "m").classify().disposition, disposition);
        assert_eq!(of_chain(&Link::around(StoreError::new(kind, "m"))).disposition, disposition);
    }
}

fn verdict_of<E: Classify>(error: &E) -> Verdict {
    error.classify()
}

#[test]
fn boxed_errors_of_every_make_ask_their_chain() {
    let make = || Link::around(Link::around(io_error(io::ErrorKind::ConnectionReset)));
    let plain: Box<dyn Error> = Box::new(make());
    let shared: Arc<dyn Error + Send + Sync> = Arc::new(make());
    let send: Box<dyn Error + Send> = Box::new(make());
    let sync: Box<dyn Error + Sync> = Box::new(make());
    let both: Box<dyn Error + Send + Sync> = Box::new(make());
    let expected = Verdict::retryable("connection").outcome_unknown();
    assert_eq!(verdict_of(&plain), expected);
    assert_eq!(verdict_of(&send), expected);
    assert_eq!(verdict_of(&sync), expected);
    assert_eq!(verdict_of(&both), expected);
    assert_eq!(verdict_of(&shared), expected);
    assert_eq!(verdict_of(&&*both), expected);
    assert_eq!(both.describe().as_deref(), Some("link"));
    // A box of a type that classifies itself is asked itself.
    assert_eq!(short(verdict_of(&Box::new(io_error(io::ErrorKind::NotFound)))), (Permanent, "not_found"));
    let text: Box<dyn Error> = "only text".into();
    assert_eq!(verdict_of(&text), Verdict::unknown("unknown"));
}

#[test]
fn pointers_inside_a_chain_are_looked_through() {
    let boxed: Box<dyn Error + Send + Sync> = Box::new(Box::new(io_error(io::ErrorKind::TimedOut)));
    assert_eq!(short(boxed.classify()), (Retryable, "timeout"));
    let shared: Box<dyn Error> = Box::new(Arc::new(io::Error::other(io_error(io::ErrorKind::TimedOut))));
    assert_eq!(short(shared.classify()), (Retryable, "timeout"));
}

// 5.4 [smithy-rs#2977]
#[test]
fn no_opinion_further_in_never_wipes_out_an_earlier_verdict() {
    let refused = io::Error::new(io::ErrorKind::ConnectionRefused, Link::around(Link(None)));
    assert_eq!(short(of_chain(&Link::around(refused))), (Retryable, "connection"));
    let nothing_within = io::Error::new(io::ErrorKind::ConnectionRefused, io_error(io::ErrorKind::Other));
    assert_eq!(short(of_chain(&nothing_within)), (Retryable, "connection"));
    // Without an opinion anywhere, what was known first remains.
    assert_eq!(short(of_chain(&io::Error::other(Link(None)))), (Unknown, "io"));
}

// 5.5 [tenacity: hangs on a cycle]
#[test]
fn a_circle_of_sources_ends() {
    assert_eq!(of_chain(&Circle), Verdict::unknown("unknown"));
    let boxed: Box<dyn Error + Send + Sync> = Box::new(io::Error::other(Circle));
    assert_eq!(short(boxed.classify()), (Unknown, "io"));
    let mut asked = 0;
    of_chain_with(&Circle, |_| {
        asked += 1;
        None
    });
    assert_eq!(asked, 64);
}

// 5.5
#[test]
fn a_chain_is_walked_for_64_errors() {
    let at = |depth| Link::deep(depth, io_error(io::ErrorKind::TimedOut)).classify().disposition;
    assert_eq!(at(63), Retryable);
    assert_eq!(at(64), Unknown);
}

#[test]
fn a_type_of_the_users_own_is_asked_first() {
    let chain = Link::around(io_error(io::ErrorKind::NotFound));
    let own = |link: &(dyn Error + 'static)| link.is::<Link>().then(|| Verdict::retryable("own"));
    assert_eq!(short(of_chain_with(&chain, own)), (Retryable, "own"));
    // 5.4: an own answer without opinion keeps its code and lets the next decide.
    let unsure = |link: &(dyn Error + 'static)| link.is::<Link>().then(|| Verdict::unknown("own").code(7));
    let verdict = of_chain_with(&chain, unsure);
    assert_eq!((short(verdict), verdict.code), ((Permanent, "not_found"), Some(7)));
}

#[test]
fn json_errors() {
    let error = |text: &str| serde_json::from_str::<Vec<u8>>(text).unwrap_err();
    assert_eq!(short(verdict_of(&error("[1,"))), (Retryable, "truncated"));
    assert_eq!(short(verdict_of(&error(""))), (Retryable, "truncated"));
    assert_eq!(short(verdict_of(&error("<html>"))), (Permanent, "invalid_json"));
    assert_eq!(short(verdict_of(&error("[\"a\"]"))), (Permanent, "invalid_json"));
    let reader = serde_json::from_reader::<_, u8>(Broken).unwrap_err();
    assert_eq!(short(verdict_of(&reader)), (Retryable, "connection"));
    assert_eq!(short(of_chain(&Link::around(error("<html>")))), (Permanent, "invalid_json"));
}

struct Broken;

impl io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io_error(io::ErrorKind::ConnectionReset))
    }
}

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn tokio_timeouts() {
    let elapsed = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await.unwrap_err();
    let expected = Verdict::retryable("timeout").outcome_unknown();
    assert_eq!(elapsed.classify(), expected);
    assert_eq!(of_chain(&Link::around(elapsed)), expected);
}

#[cfg(feature = "anyhow")]
#[test]
fn anyhow_errors_ask_their_chain() {
    use anyhow::Context;
    let error = Err::<(), _>(io_error(io::ErrorKind::ConnectionRefused)).context("reading").context("starting");
    let error = error.unwrap_err();
    assert_eq!(short(verdict_of(&error)), (Retryable, "connection"));
    assert_eq!(error.describe().as_deref(), Some("starting"));
    assert_eq!(verdict_of(&anyhow::anyhow!("only text")), Verdict::unknown("unknown"));
    assert_eq!(verdict_of(&anyhow::Error::new(Circle)), Verdict::unknown("unknown"));
}

#[cfg(feature = "http")]
#[test]
fn http_statuses_and_parts() {
    use retry_runtime::classify::StatusField;
    let verdict = http::StatusCode::TOO_MANY_REQUESTS.classify();
    assert_eq!(verdict, Verdict::retryable("rate_limit").code(429));
    assert_eq!(http::StatusCode::GONE.classify().disposition, Disposition::Gone);
    assert_eq!(http::StatusCode::FORBIDDEN.status(), Some(403));
    let uri = "http://[".parse::<http::Uri>().unwrap_err();
    assert_eq!(short(of_chain(&Link::around(uri))), (Permanent, "invalid_request"));
    let mut headers = http::HeaderMap::new();
    headers.insert("retry-after", http::HeaderValue::from_static("7"));
    headers.insert("x-should-retry", http::HeaderValue::from_bytes(b"\xff").unwrap());
    let hints = retry_runtime::hints::from_header_map(&headers, std::time::SystemTime::UNIX_EPOCH);
    assert_eq!((hints.retry_after, hints.should_retry), (Some(Duration::from_secs(7)), None));
}
