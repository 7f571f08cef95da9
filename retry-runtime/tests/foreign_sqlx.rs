//! Verdicts about sqlx' errors.
#![cfg(feature = "sqlx")]
#![allow(clippy::unwrap_used, clippy::panic)] // a test may fail

use std::borrow::Cow;
use std::error::Error;
use std::{fmt, io};

use retry_runtime::Disposition::{Permanent, Retryable, Unknown};
use retry_runtime::classify::{of_chain, sql_state};
use retry_runtime::{Classify, Disposition, Verdict};
use sqlx_core::Error as SqlxError;
use sqlx_core::error::{DatabaseError, ErrorKind};

/// What a driver says the database answered.
#[derive(Debug)]
struct Answer(Option<&'static str>);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no")
    }
}

impl Error for Answer {}

impl DatabaseError for Answer {
    fn message(&self) -> &'static str {
        "no"
    }
    fn code(&self) -> Option<Cow<'_, str>> {
        self.0.map(Cow::Borrowed)
    }
    fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self
    }
    fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
        self
    }
    fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
        self
    }
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

fn parts(error: &SqlxError) -> (Disposition, &'static str, bool) {
    let verdict = error.classify();
    (verdict.disposition, verdict.class, verdict.outcome_unknown)
}

#[test]
fn answers_of_a_database() {
    let of = |code| SqlxError::from(Answer(Some(code))).classify();
    for code in ["40001", "40P01", "08006", "57P01", "23505", "42P01", "HY000", "53300"] {
        assert_eq!(of(code), sql_state(code), "{code}");
    }
    for (code, disposition, class) in [
        ("5", Retryable, "busy"),
        ("517", Retryable, "busy"),
        ("6", Retryable, "busy"),
        ("15", Retryable, "busy"),
        ("17", Retryable, "conflict"),
        ("4", Retryable, "conflict"),
        ("10", Retryable, "io"),
        ("8714", Retryable, "io"),
        ("7", Retryable, "out_of_memory"),
        ("9", Unknown, "interrupted"),
        ("13", Permanent, "storage_full"),
        ("11", Permanent, "corrupt"),
        ("26", Permanent, "corrupt"),
        ("8", Permanent, "read_only"),
        ("14", Permanent, "cannot_open"),
        ("2067", Permanent, "constraint"),
        ("3", Permanent, "permission_denied"),
        ("23", Permanent, "permission_denied"),
        ("18", Permanent, "too_large"),
        ("1", Permanent, "invalid_request"),
    ] {
        let verdict = of(code);
        assert_eq!((verdict.disposition, verdict.class), (disposition, class), "{code}");
        assert_eq!(verdict.code, code.parse().ok());
    }
    assert_eq!(parts(&SqlxError::from(Answer(None))), (Unknown, "database", false));
}

#[test]
fn what_happens_without_an_answer() {
    let io = |kind| io::Error::from(kind);
    for (error, disposition, class, outcome_unknown) in [
        (SqlxError::Io(io(io::ErrorKind::ConnectionReset)), Retryable, "connection", true),
        (SqlxError::Io(io(io::ErrorKind::UnexpectedEof)), Retryable, "connection", true),
        (SqlxError::Io(io(io::ErrorKind::ConnectionRefused)), Retryable, "connection", false),
        (SqlxError::Protocol("m".into()), Retryable, "connection", true),
        (SqlxError::WorkerCrashed, Retryable, "connection", true),
        (SqlxError::PoolTimedOut, Retryable, "busy", false),
        (SqlxError::BeginFailed, Retryable, "connection", false),
        (SqlxError::Tls("certificate".into()), Permanent, "tls", false),
        (SqlxError::Tls(Box::new(io(io::ErrorKind::ConnectionReset))), Retryable, "connection", true),
        (SqlxError::PoolClosed, Permanent, "closed", false),
        (SqlxError::RowNotFound, Permanent, "not_found", false),
        (SqlxError::Configuration("url".into()), Permanent, "configuration", false),
        (SqlxError::InvalidArgument("m".into()), Permanent, "invalid_request", false),
        (SqlxError::TypeNotFound { type_name: "t".into() }, Permanent, "invalid_request", false),
        (SqlxError::ColumnIndexOutOfBounds { index: 2, len: 1 }, Permanent, "invalid_request", false),
        (SqlxError::ColumnNotFound("c".into()), Permanent, "invalid_request", false),
        (SqlxError::InvalidSavePointStatement, Permanent, "invalid_request", false),
        (SqlxError::Decode("m".into()), Unknown, "invalid_data", false),
        (SqlxError::Encode(Box::new("x".parse::<u8>().unwrap_err())), Permanent, "invalid_number", false),
        (SqlxError::ColumnDecode { index: "1".into(), source: "m".into() }, Unknown, "invalid_data", false),
        (SqlxError::AnyDriverError("m".into()), Unknown, "sqlx", false),
    ] {
        assert_eq!(parts(&error), (disposition, class, outcome_unknown), "{error:?}");
    }
}

#[test]
fn hidden_in_another_error() {
    let hidden = io::Error::other(SqlxError::from(Answer(Some("40001"))));
    assert_eq!(of_chain(&hidden), Verdict::retryable("conflict"));
}
