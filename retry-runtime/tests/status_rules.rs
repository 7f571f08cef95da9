//! Deciding by status and message.

use proptest::prelude::*;
use retry_runtime::Disposition::{self, Gone, Permanent, Retryable, Unknown};
use retry_runtime::{StatusRules, Verdict};

/// The rules of the batch pipeline.
const B1: StatusRules = StatusRules::new()
    .permanent(&[400, 403, 404, 422])
    .permanent_words(&["INVALID_ARGUMENT", "FAILED_PRECONDITION", "SAFETY", "BLOCKED"])
    .retryable(&[429, 500, 502, 503, 504])
    .retryable_words(&["DEADLINE_EXCEEDED", "UNAVAILABLE"]);

fn b1(status: i64, message: &str) -> Disposition {
    B1.verdict(Some(status), message).disposition
}

// B1.1
#[test]
fn b1_1_statuses() {
    for status in [400, 403, 404, 422] {
        assert_eq!(b1(status, ""), Permanent, "{status}");
    }
    for status in [429, 500, 502, 503, 504] {
        assert_eq!(b1(status, ""), Retryable, "{status}");
    }
    for status in [-1, 0, 200, 302, 401, 408, 418, 501, 599, i64::MAX] {
        assert_eq!(b1(status, ""), Unknown, "{status}");
    }
}

// B1.2
#[test]
fn b1_2_messages_whatever_their_letter_case() {
    for word in ["INVALID_ARGUMENT", "FAILED_PRECONDITION", "SAFETY", "BLOCKED"] {
        for message in [word.to_owned(), word.to_lowercase(), format!("finish reason: {word}."), format!("é{word}é")]
        {
            assert_eq!(B1.verdict(None, &message).disposition, Permanent, "{message}");
        }
    }
    for word in ["DEADLINE_EXCEEDED", "UNAVAILABLE"] {
        for message in [word.to_owned(), word.to_lowercase(), format!("Service {word}!")] {
            assert_eq!(B1.verdict(None, &message).disposition, Retryable, "{message}");
        }
    }
    assert_eq!(B1.verdict(None, "SafeTy first").disposition, Permanent);
    for message in ["", "S", "SAFET", "Y", "SAFE TY", "deadline exceeded", "anything else"] {
        assert_eq!(B1.verdict(None, message).disposition, Unknown, "{message}");
    }
}

// B1.3
#[test]
fn b1_3_order_of_the_rules() {
    assert_eq!(b1(503, "blocked by SAFETY"), Permanent, "a permanent message beats a retryable status");
    assert_eq!(b1(418, "UNAVAILABLE"), Retryable, "a retryable message where the status says nothing");
    assert_eq!(b1(400, "UNAVAILABLE"), Permanent, "a permanent status beats a retryable message");
    assert_eq!(b1(429, "DEADLINE_EXCEEDED"), Retryable);
    assert_eq!(B1.verdict(None, "UNAVAILABLE for SAFETY").disposition, Permanent);
    assert_eq!(b1(418, "short and stout"), Unknown);
    let verdict = B1.verdict(Some(503), "SAFETY");
    assert_eq!((verdict.code, verdict.class), (Some(503), "safety"));
}

#[test]
fn http_table_as_documented() {
    let http = |status| StatusRules::HTTP.verdict(Some(status), "").disposition;
    for status in -10..1000 {
        let wanted = match status {
            404 | 410 => Gone,
            409 => Unknown,
            408 | 421 | 423 | 425 | 429 => Retryable,
            501 | 505 | 506 | 507 | 508 | 510 | 511 | 526 | 400..=499 => Permanent,
            500..=599 => Retryable,
            _ => Unknown,
        };
        assert_eq!(http(status), wanted, "{status}");
    }
    assert_eq!(
        StatusRules::HTTP.verdict(None, "503 Service Unavailable").disposition,
        Unknown,
        "the text is not asked"
    );
}

#[test]
fn classes_are_names_of_a_fixed_set() {
    const OWN: StatusRules = StatusRules::new().retryable_words(&["quota_of_the_day"]);
    for (status, class) in [
        (400, "invalid_request"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not_found"),
        (408, "timeout"),
        (410, "gone"),
        (418, "invalid_request"),
        (429, "rate_limit"),
        (500, "server_error"),
        (502, "bad_gateway"),
        (503, "unavailable"),
        (504, "timeout"),
        (302, "unexpected_status"),
    ] {
        let verdict = StatusRules::HTTP.verdict(Some(status), "");
        assert_eq!((verdict.class, verdict.code), (class, Some(status)));
    }
    assert_eq!(B1.verdict(None, "deadline_exceeded").class, "timeout");
    assert_eq!(B1.verdict(None, "?").class, "unknown");
    assert_eq!(OWN.verdict(None, "QUOTA_OF_THE_DAY used up").class, "quota_of_the_day", "as the table writes it");
}

#[test]
fn a_lost_answer_is_marked() {
    for status in [502, 504, 520, 522, 524, 598, 599] {
        assert!(StatusRules::HTTP.verdict(Some(status), "").outcome_unknown, "{status}");
    }
    for status in [408, 429, 500, 503] {
        assert!(!StatusRules::HTTP.verdict(Some(status), "").outcome_unknown, "{status}");
    }
}

#[test]
fn gone_yields_to_a_permanent_word_and_beats_a_retryable_one() {
    const RULES: StatusRules = StatusRules::new()
        .gone(&[404])
        .gone_words(&["no such image"])
        .permanent_words(&["forbidden"])
        .retryable(&[503])
        .retryable_words(&["try again"]);
    assert_eq!(RULES.verdict(Some(404), "").disposition, Gone);
    assert_eq!(RULES.verdict(Some(404), "try again").disposition, Gone);
    assert_eq!(RULES.verdict(Some(404), "Forbidden").disposition, Permanent);
    assert_eq!(RULES.verdict(Some(503), "No such image").disposition, Gone);
}

#[test]
fn lists_beat_ranges_and_empty_words_say_nothing() {
    const RULES: StatusRules =
        StatusRules::new().permanent_range(400, 499).retryable(&[429]).unknown(&[409]).permanent_words(&[""]);
    assert_eq!(RULES.verdict(Some(429), "anything").disposition, Retryable);
    assert_eq!(RULES.verdict(Some(409), "anything").disposition, Unknown);
    assert_eq!(RULES.verdict(Some(400), "anything").disposition, Permanent);
    assert_eq!(RULES.verdict(None, "anything").disposition, Unknown);
    assert_eq!(StatusRules::new().verdict(Some(500), "UNAVAILABLE").disposition, Unknown);
}

// Evaluated by the compiler, which proves that nothing is allocated.
const AT_COMPILE_TIME: Verdict = B1.verdict(Some(503), "Blocked for safety");

#[test]
fn a_verdict_allocates_nothing() {
    assert_eq!(AT_COMPILE_TIME, Verdict::permanent("safety").code(503));
}

proptest! {
    #[test]
    fn any_status_and_text_is_decided_as_a_plain_search_would(status: Option<i64>, message in ".{0,40}(SAFETY|unavailable|)?.{0,10}") {
        let upper = message.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| upper.contains(word));
        let wanted = if status.is_some_and(|status| [400, 403, 404, 422].contains(&status))
            || has(&["INVALID_ARGUMENT", "FAILED_PRECONDITION", "SAFETY", "BLOCKED"])
        {
            Permanent
        } else if status.is_some_and(|status| [429, 500, 502, 503, 504].contains(&status))
            || has(&["DEADLINE_EXCEEDED", "UNAVAILABLE"])
        {
            Retryable
        } else {
            Unknown
        };
        prop_assert_eq!(B1.verdict(status, &message).disposition, wanted);
    }
}
