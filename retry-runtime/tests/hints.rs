//! Server hints: each form, and nothing that comes from outside panics.
#![allow(clippy::unwrap_used)] // a test may fail

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use retry_runtime::hints::{self, Hints, Pushback};
use retry_runtime::{Disposition, Verdict};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// 1994-11-06 08:49:37 UTC, the example of RFC 9110.
const RFC_DATE: u64 = 784_111_777;

fn at(unix: u64) -> SystemTime {
    UNIX_EPOCH + secs(unix)
}

fn retry_after(value: &str) -> Option<Duration> {
    hints::retry_after(value, at(RFC_DATE - 100))
}

// 4.2
#[test]
fn retry_after_seconds() {
    for (value, wait) in [
        ("0", Duration::ZERO),
        ("120", secs(120)),
        (" 7 ", secs(7)),
        ("007", secs(7)),
        ("1.5", millis(1500)),
        ("0.25", millis(250)),
        ("0.0000000001", Duration::from_nanos(1)),
        ("99999999999999999999999999999999999999999999", Duration::MAX),
    ] {
        assert_eq!(retry_after(value), Some(wait), "{value}");
    }
}

// 4.2
#[test]
fn retry_after_dates() {
    for value in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 6 Nov 1994 08:49:37 UTC",
    ] {
        assert_eq!(hints::http_date(value, at(RFC_DATE)), Some(at(RFC_DATE)), "{value}");
        assert_eq!(retry_after(value), Some(secs(100)), "{value}");
    }
}

// 4.2: a past date is zero.
#[test]
fn a_past_date_is_a_wait_of_zero() {
    for value in ["Sun, 06 Nov 1994 08:46:37 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 GMT"] {
        assert_eq!(retry_after(value), Some(Duration::ZERO), "{value}");
    }
}

// 4.2: nonsense is no hint.
#[test]
fn nonsense_is_no_hint() {
    for value in [
        "",
        " ",
        "-1",
        "+1",
        "1.",
        ".5",
        "1e3",
        "1,5",
        "5s",
        "soon",
        "NaN",
        "inf",
        "0x10",
        "1 2",
        "٣",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 29 Feb 1995 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 94 08:49:37:00 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Now 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT GMT",
        "06 Nov 1994 08:49:37 GMT",
        "1994-11-06T08:49:37Z",
        "Sun, 06-Nov 08:49:37 GMT",
        "Sun Nov 6 08:49:37",
    ] {
        assert_eq!(retry_after(value), None, "{value}");
    }
}

// 4.2
#[test]
fn the_century_of_a_short_year_follows_the_clock() {
    let date = |value, now| hints::http_date(value, at(now)).and_then(|date| date.duration_since(UNIX_EPOCH).ok());
    let in_2026 = 1_796_000_000;
    assert_eq!(date("Sunday, 06-Nov-94 08:49:37 GMT", in_2026), Some(secs(RFC_DATE)), "2094 is over 50 years ahead");
    assert_eq!(date("Friday, 01-Jan-27 00:00:00 GMT", in_2026), Some(secs(1_798_761_600)));
}

// 4.2
#[test]
fn milliseconds() {
    assert_eq!(hints::retry_after_ms("1500"), Some(millis(1500)));
    assert_eq!(hints::retry_after_ms("0.5"), Some(Duration::from_micros(500)));
    assert_eq!(hints::retry_after_ms("-3"), None);
    assert_eq!(hints::retry_after_ms("x"), None);
}

// 4.2
#[test]
fn google_retry_info() {
    assert_eq!(hints::proto_duration("53s"), Some(secs(53)));
    assert_eq!(hints::proto_duration("0.5s"), Some(millis(500)));
    assert_eq!(hints::proto_duration("1.000340012s"), Some(Duration::new(1, 340_012)));
    for nonsense in ["53", "s", "-1s", "53ms", "53 s", "1.s", "", "53ss"] {
        assert_eq!(hints::proto_duration(nonsense), None, "{nonsense}");
    }
    let info = r#"{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.5s"}"#;
    let other = r#"{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "retryDelay": "9s"}"#;
    for body in [
        format!(r#"{{"error": {{"code": 429, "message": "m", "details": [{other}, {info}]}}}}"#),
        format!(r#"[{{"error": {{"details": [{info}]}}}}]"#),
        format!(r#"{{"details": [{info}]}}"#),
        format!("[{info}]"),
        info.to_owned(),
        r#"{"@type": "google.rpc.RetryInfo", "retry_delay": {"seconds": "0", "nanos": 500000000}}"#.to_owned(),
    ] {
        assert_eq!(hints::retry_info_in(&body), Some(millis(500)), "{body}");
    }
    for body in [
        "",
        "null",
        "[]",
        "{}",
        "<html>",
        r#"{"error": {"details": [{"@type": "google.rpc.RetryInfo"}]}}"#,
        r#"{"@type": "google.rpc.RetryInfo", "retryDelay": "soon"}"#,
        r#"{"@type": "google.rpc.RetryInfo", "retryDelay": {}}"#,
        r#"{"@type": "google.rpc.RetryInfo", "retryDelay": {"seconds": -1}}"#,
        r#"{"@type": "google.rpc.RetryInfo", "retryDelay": {"nanos": 1000000000}}"#,
        r#"{"retryDelay": "53s"}"#,
    ] {
        assert_eq!(hints::retry_info_in(body), None, "{body}");
    }
    let deep = format!("{}{info}{}", r#"{"error":"#.repeat(100), "}".repeat(100));
    assert_eq!(hints::retry_info_in(&deep), None, "the search is bounded");
}

// 4.2: negative = stop.
#[test]
fn grpc_pushback() {
    assert_eq!(hints::grpc_pushback("250"), Some(Pushback::After(millis(250))));
    assert_eq!(hints::grpc_pushback("0"), Some(Pushback::After(Duration::ZERO)));
    assert_eq!(hints::grpc_pushback("-1"), Some(Pushback::Stop));
    for nonsense in ["", "-", "nonsense", "1.5", "--1", "-x"] {
        assert_eq!(hints::grpc_pushback(nonsense), None, "{nonsense}");
    }
}

// 4.2
#[test]
fn x_should_retry() {
    assert_eq!(hints::should_retry("true"), Some(true));
    assert_eq!(hints::should_retry(" False"), Some(false));
    assert_eq!(hints::should_retry("1"), None);
}

fn read(headers: &[(&str, &'static str)]) -> Hints {
    let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    hints::from_headers(header, at(RFC_DATE))
}

// 4.2
#[test]
fn headers_together() {
    assert_eq!(read(&[]), Hints::default());
    assert_eq!(read(&[("retry-after", "3")]).retry_after, Some(secs(3)));
    assert_eq!(read(&[("retry-after", "3"), ("retry-after-ms", "2500")]).retry_after, Some(millis(2500)));
    assert_eq!(read(&[("retry-after", "3"), ("retry-after-ms", "x")]).retry_after, Some(secs(3)));
    assert_eq!(read(&[("retry-after", "3"), ("x-ms-retry-after-ms", "1")]).retry_after, Some(millis(1)));
    assert_eq!(read(&[("grpc-retry-pushback-ms", "5"), ("retry-after", "3")]).retry_after, Some(millis(5)));
    let stop = read(&[("grpc-retry-pushback-ms", "-1"), ("x-should-retry", "true")]);
    assert_eq!((stop.retry_after, stop.should_retry), (None, Some(false)));
}

// 4.2, 5.4: a hint replaces what it speaks of, and nothing else.
#[test]
fn hints_change_a_verdict() {
    let busy = Verdict::retryable("rate_limit").code(429).retry_after(secs(9));
    assert_eq!(Hints::default().apply(busy), busy, "no hint never wipes out an earlier one");
    assert_eq!(read(&[("retry-after", "3")]).apply(busy).retry_after, Some(secs(3)));
    let no = read(&[("x-should-retry", "false")]);
    let yes = read(&[("x-should-retry", "true")]);
    assert_eq!(no.apply(busy).disposition, Disposition::Permanent);
    assert_eq!(no.apply(busy).class, "rate_limit");
    assert_eq!(yes.apply(Verdict::permanent("conflict")).disposition, Disposition::Retryable);
    assert_eq!(yes.apply(Verdict::gone("not_found")).disposition, Disposition::Gone);
}

fn nearly_valid() -> impl Strategy<Value = String> {
    prop_oneof![
        ".*",
        "[-+]?[0-9]{0,40}[.,]?[0-9]{0,40}(s|ms| )?",
        "(Sun|Sunday),? [0-9]{0,3}[ -][A-Za-z]{3}[ -][0-9]{0,5} [0-9:]{0,9} (GMT|UTC)?",
        "Sun (Jan|Feb|Nov) {1,2}[0-9]{1,2} [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}",
    ]
}

proptest! {
    // 4.2
    #[test]
    fn no_text_panics(value in nearly_valid(), secs: u32) {
        let now = at(u64::from(secs));
        let _ = hints::retry_after(&value, now);
        let _ = hints::retry_after_ms(&value);
        let _ = hints::http_date(&value, now);
        let _ = hints::proto_duration(&value);
        let _ = hints::grpc_pushback(&value);
        let _ = hints::should_retry(&value);
        let _ = hints::retry_info_in(&value);
        let _ = hints::from_headers(|_| Some(&value), now);
    }

    // 4.2: against an independent implementation.
    #[test]
    fn dates_round_trip(unix in 0..253_402_300_799_u64) {
        let text = httpdate::fmt_http_date(at(unix));
        prop_assert_eq!(hints::http_date(&text, at(0)), Some(at(unix)), "{}", text);
    }

    // 4.2
    #[test]
    fn dates_agree_with_an_independent_parser(value in nearly_valid()) {
        if let Ok(date) = httpdate::parse_http_date(&value) {
            // It takes years before 1970 for nonsense and has its own idea of short years.
            if !value.contains('-') {
                prop_assert_eq!(hints::http_date(&value, at(0)), Some(date), "{}", value);
            }
        }
    }

    // 4.2
    #[test]
    fn seconds_round_trip(nanos: u64) {
        let wait = Duration::from_nanos(nanos);
        let text = format!("{}.{:09}", wait.as_secs(), wait.subsec_nanos());
        prop_assert_eq!(hints::retry_after(&text, at(0)), Some(wait));
        prop_assert_eq!(hints::proto_duration(&format!("{text}s")), Some(wait));
    }
}
