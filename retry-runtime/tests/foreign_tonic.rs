//! Verdicts about gRPC statuses.
#![cfg(feature = "tonic")]
#![allow(clippy::unwrap_used, clippy::panic)] // a test may fail

use std::io;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use retry_runtime::Disposition::{Permanent, Retryable, Unknown};
use retry_runtime::classify::of_chain;
use retry_runtime::hints::rpc_retry_info;
use retry_runtime::{Classify, Verdict};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

#[test]
fn every_code() {
    for (code, disposition, class, outcome_unknown) in [
        (Code::Ok, Unknown, "unknown", true),
        (Code::Cancelled, Unknown, "cancelled", true),
        (Code::Unknown, Unknown, "unknown", true),
        (Code::InvalidArgument, Permanent, "invalid_request", false),
        (Code::DeadlineExceeded, Retryable, "timeout", true),
        (Code::NotFound, Permanent, "not_found", false),
        (Code::AlreadyExists, Permanent, "conflict", false),
        (Code::PermissionDenied, Permanent, "forbidden", false),
        (Code::ResourceExhausted, Retryable, "rate_limit", false),
        (Code::FailedPrecondition, Permanent, "precondition_failed", false),
        (Code::Aborted, Retryable, "conflict", false),
        (Code::OutOfRange, Permanent, "invalid_request", false),
        (Code::Unimplemented, Permanent, "not_supported", false),
        (Code::Internal, Retryable, "server_error", true),
        (Code::Unavailable, Retryable, "unavailable", true),
        (Code::DataLoss, Permanent, "data_loss", false),
        (Code::Unauthenticated, Permanent, "unauthorized", false),
    ] {
        let verdict = Status::new(code, "m").classify();
        let found = (verdict.disposition, verdict.class, verdict.outcome_unknown);
        assert_eq!(found, (disposition, class, outcome_unknown), "{code:?}");
        assert_eq!(verdict.code, Some(i64::from(i32::from(code))));
        assert_eq!(verdict.retry_after, None);
    }
}

fn with_cause(code: Code, cause: io::ErrorKind) -> Verdict {
    let mut status = Status::new(code, "transport");
    status.set_source(Arc::new(io::Error::from(cause)));
    status.classify()
}

#[test]
fn causes_say_what_was_sent() {
    assert!(!with_cause(Code::Unavailable, io::ErrorKind::ConnectionRefused).outcome_unknown);
    assert!(with_cause(Code::Unavailable, io::ErrorKind::ConnectionReset).outcome_unknown);
    assert!(with_cause(Code::Unavailable, io::ErrorKind::TimedOut).outcome_unknown);
    // a code without an opinion leaves it to the cause
    let verdict = with_cause(Code::Unknown, io::ErrorKind::ConnectionReset);
    assert_eq!((verdict.disposition, verdict.class, verdict.code), (Retryable, "connection", Some(2)));
    let hidden = io::Error::other(Status::aborted("m"));
    assert_eq!(of_chain(&hidden), Verdict::retryable("conflict").code(10));
}

fn pushed_back(code: Code, pushback: &str) -> Verdict {
    let mut metadata = MetadataMap::new();
    metadata.insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
    Status::with_metadata(code, "m", metadata).classify()
}

// 4.2
#[test]
fn a_pushback_says_when_or_never() {
    let verdict = pushed_back(Code::Unavailable, "1500");
    assert_eq!((verdict.disposition, verdict.retry_after), (Retryable, Some(Duration::from_millis(1500))));
    assert_eq!(pushed_back(Code::Unavailable, "-1").disposition, Permanent, "negative means stop");
    assert_eq!(pushed_back(Code::ResourceExhausted, "-1").disposition, Permanent);
    assert_eq!(pushed_back(Code::InvalidArgument, "5").disposition, Permanent, "a wait is no permission");
    assert_eq!(pushed_back(Code::Unavailable, "soon").retry_after, None, "nonsense is no hint");
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}

fn text(field: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn int(field: u64, number: i64) -> Vec<u8> {
    [varint(field << 3), varint(u64::from_le_bytes(number.to_le_bytes()))].concat()
}

fn any(kind: &str, value: &[u8]) -> Vec<u8> {
    text(3, &[text(1, kind.as_bytes()), text(2, value)].concat())
}

/// A `google.rpc.Status` with another detail before the one that counts.
fn details(seconds: i64, nanos: i64) -> Vec<u8> {
    let delay = [int(1, seconds), int(2, nanos)].concat();
    [
        int(1, 14),
        text(2, b"busy"),
        any("type.googleapis.com/google.rpc.ErrorInfo", &text(1, b"QUOTA")),
        any("type.googleapis.com/google.rpc.RetryInfo", &text(1, &delay)),
    ]
    .concat()
}

// 4.2
#[test]
fn retry_info_says_when() {
    let status = |seconds, nanos| Status::with_details(Code::ResourceExhausted, "m", details(seconds, nanos).into());
    assert_eq!(status(53, 500_000_000).classify().retry_after, Some(Duration::from_millis(53_500)));
    assert_eq!(status(0, 0).classify().retry_after, Some(Duration::ZERO));
    assert_eq!(status(-1, 0).classify().retry_after, None);
    assert_eq!(status(1, 1_000_000_000).classify().retry_after, None);
    assert_eq!(status(1, -1).classify().retry_after, None);
    // without the message inside it, it asks for nothing; another kind of detail is none
    assert_eq!(rpc_retry_info(&any("type.googleapis.com/google.rpc.RetryInfo", b"")), None);
    assert_eq!(rpc_retry_info(&any("type.googleapis.com/google.rpc.Help", &text(1, &int(1, 5)))), None);
    let mut metadata = MetadataMap::new();
    metadata.insert("grpc-retry-pushback-ms", "7".parse().unwrap());
    let both = Status::with_details_and_metadata(Code::Unavailable, "m", details(53, 0).into(), metadata);
    assert_eq!(both.classify().retry_after, Some(Duration::from_millis(7)), "the pushback is about this very call");
}

proptest! {
    // bytes from outside: no panic, and nothing but the truth
    #[test]
    fn any_bytes_are_read(bytes: Vec<u8>) {
        rpc_retry_info(&bytes);
    }

    #[test]
    fn whatever_was_written_is_read(seconds in 0..i64::MAX, nanos in 0..1_000_000_000_i64, cut in 0..200_usize) {
        let written = details(seconds, nanos);
        let expected = Duration::new(seconds.unsigned_abs(), u32::try_from(nanos).unwrap());
        prop_assert_eq!(rpc_retry_info(&written), Some(expected));
        if let Some(torn) = written.get(..cut).filter(|torn| torn.len() < written.len()) {
            prop_assert_eq!(rpc_retry_info(torn), None);
        }
    }
}
