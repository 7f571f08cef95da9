//! `GaveUp`: the reason, the knob with its value, and the last error.

use std::error::Error;
use std::time::Duration;

use retry_runtime::testing::VirtualWaits;
use retry_runtime::{GaveUp, StopReason, Verdict, retry};

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("no luck")]
struct Failed(Verdict);

fn verdict(failed: &Failed) -> Verdict {
    failed.0
}

#[retry(classify = verdict, max_retries = 2, deadline = limit, max_retry_after = "90s")]
fn call(limit: Duration, of: Verdict) -> Result<(), GaveUp<Failed>> {
    Err(Failed(of))
}

// 6.2
#[test]
fn it_names_the_knob_and_its_value() {
    let (hour, slow) = (Duration::from_secs(3600), Verdict::retryable("slow"));
    for (limit, verdict, head) in [
        (hour, slow, "gave up after 3 attempts in 3.0s: exhausted: max_retries 2 used up"),
        (Duration::from_secs(2), slow, "gave up after 2 attempts in 1.0s: deadline 2s would pass during a wait of 2s"),
        (
            hour,
            slow.retry_after(hour),
            "gave up after 1 attempt in 0s: server asked to wait 3600s, longer than max_retry_after 90s",
        ),
        (hour, Verdict::permanent("denied"), "gave up after 1 attempt in 0s: permanent failure"),
        (hour, Verdict::unknown("odd"), "gave up after 1 attempt in 0s: unknown failure, and unknown = stop"),
    ] {
        let _waits = VirtualWaits::start();
        let text = call(limit, verdict).unwrap_err().to_string();
        // How long an attempt really took is nobody's promise.
        let stable = |text: &str| {
            text.split(" in ").next().map(str::to_owned).zip(text.split_once(": ").map(|t| t.1.to_owned()))
        };
        assert_eq!(stable(&text), stable(&format!("{head}; last error: no luck")), "{text}");
    }
}

// 6.2
#[test]
fn its_source_is_the_last_error() {
    let gave_up = call(Duration::from_secs(60), Verdict::permanent("denied")).unwrap_err();
    let source = gave_up.source().and_then(|source| source.downcast_ref::<Failed>());
    assert_eq!(source, Some(&Failed(Verdict::permanent("denied"))));
    assert_eq!((gave_up.reason(), gave_up.last()), (StopReason::Permanent, source));
}
