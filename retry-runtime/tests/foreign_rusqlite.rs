//! Verdicts about rusqlite's errors.
#![cfg(feature = "rusqlite")]

use std::io;

use retry_runtime::Classify;
use retry_runtime::Disposition::{self, Permanent, Retryable, Unknown};
use rusqlite::{Error, ffi, types::Type};

fn of(error: &Error) -> (Disposition, &'static str) {
    let verdict = error.classify();
    (verdict.disposition, verdict.class)
}

#[test]
fn result_codes() {
    for (code, disposition, class) in [
        (5, Retryable, "busy"),
        (5 | 2 << 8, Retryable, "busy"),
        (6, Retryable, "busy"),
        (15, Retryable, "busy"),
        (17, Retryable, "conflict"),
        (4, Retryable, "conflict"),
        (10, Retryable, "io"),
        (7, Retryable, "out_of_memory"),
        (9, Unknown, "interrupted"),
        (13, Permanent, "storage_full"),
        (11, Permanent, "corrupt"),
        (26, Permanent, "corrupt"),
        (8, Permanent, "read_only"),
        (14, Permanent, "cannot_open"),
        (19, Permanent, "constraint"),
        (3, Permanent, "permission_denied"),
        (23, Permanent, "permission_denied"),
        (18, Permanent, "too_large"),
        (20, Permanent, "invalid_request"),
        (21, Permanent, "invalid_request"),
        (25, Permanent, "invalid_request"),
        (1, Permanent, "invalid_request"),
    ] {
        let error = Error::SqliteFailure(ffi::Error::new(code), None);
        assert_eq!(of(&error), (disposition, class), "{code}");
    }
}

#[test]
fn rusqlites_own_errors() {
    assert_eq!(of(&Error::QueryReturnedNoRows), (Permanent, "not_found"));
    assert_eq!(of(&Error::InvalidColumnIndex(9)), (Permanent, "invalid_request"));
    assert_eq!(of(&Error::IntegralValueOutOfRange(0, -1)), (Permanent, "invalid_data"));
}

#[test]
fn an_error_inside_a_conversion_is_asked() {
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    assert_eq!(of(&Error::ToSqlConversionFailure(Box::new(reset))), (Retryable, "connection"));
    let text = Error::FromSqlConversionFailure(0, Type::Text, "no date".into());
    assert_eq!(of(&text), (Unknown, "invalid_data"));
}

#[test]
fn found_in_a_boxed_error() {
    let busy: Box<dyn std::error::Error> = Box::new(Error::SqliteFailure(ffi::Error::new(5), None));
    assert_eq!(busy.classify().disposition, Retryable);
}
