//! The examples `opentelemetry` and `prometheus`: what they export, name by name (SEMANTICS 12.1, 12.3, 12.5).
#![allow(clippy::expect_used)] // a helper of a test fails as a test does

#[path = "helpers/mod.rs"]
mod helpers;

use std::collections::BTreeMap;

use helpers::{Outcome, example, run};

/// `NAME : VALUE` among some lines, the last of them.
fn said<'t>(lines: &[&'t str], name: &str) -> &'t str {
    let values = lines.iter().filter_map(|line| line.split_once(':'));
    values.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim()).next_back().unwrap_or_default()
}

/// `-> KEY: VALUE` among some lines, without the type that a span writes around the value.
fn attributes<'t>(lines: &[&'t str]) -> Vec<(&'t str, &'t str)> {
    let pairs = lines.iter().filter_map(|line| line.trim().strip_prefix("->")?.split_once(':'));
    pairs
        .map(|(key, value)| (key.trim(), value.rsplit('(').next().unwrap_or(value).trim_matches([' ', '"', ')'])))
        .collect()
}

/// The parts of a text that begin with lines that start so; what comes before the first is left out.
fn parts<'t>(lines: &[&'t str], start: &str) -> Vec<Vec<&'t str>> {
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for line in lines {
        if line.trim().starts_with(start) {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(line);
        }
    }
    parts
}

/// What stands before the events of a span.
fn own<'s, 't>(span: &'s [&'t str]) -> &'s [&'t str] {
    span.split(|line| line.trim() == "Events:").next().unwrap_or(span)
}

/// What is no business of ours: where in the code it was said, by which thread, and how long that took.
fn is_ours(key: &str) -> bool {
    !["code.", "thread.", "busy_", "idle_"].iter().any(|prefix| key.starts_with(prefix)) && key != "target"
}

const FIRST: &[&str] = &["attempt_started", "succeeded"];
const THIRD: &[&str] = &[
    "attempt_started",
    "attempt_failed",
    "retry_scheduled",
    "attempt_started",
    "attempt_failed",
    "retry_scheduled",
    "attempt_started",
    "recovered",
];
const NEVER: &[&str] = &["attempt_started", "attempt_failed", "gave_up"];

// 12.1, 12.3: a span for each call, inside the request's, with the shared names and no value of an argument
#[tokio::test]
async fn opentelemetry_gets_a_span_for_each_call() -> Outcome {
    let done = run(&mut example("opentelemetry")).await?;
    assert!(done.status.success(), "{}{}", done.stdout, done.stderr);
    let text = &done.stdout;
    let (spans, _) = text.split_once("\nMetrics\n").expect("spans, then metrics");
    let spans = parts(&spans.lines().collect::<Vec<_>>(), "Span #");
    let (request, calls) = spans.split_last().expect("spans");
    assert_eq!(said(own(request), "Name"), "request", "{text}");
    assert!(!said(request, "SpanId").is_empty(), "{text}");
    let wanted = [
        (FIRST, "Unset", vec![("attempts", "1"), ("outcome", "succeeded")]),
        (THIRD, "Unset", vec![("attempts", "3"), ("class", "timeout"), ("outcome", "recovered")]),
        (
            NEVER,
            "Error { description",
            vec![("attempts", "1"), ("class", "forbidden"), ("reason", "permanent"), ("outcome", "gave_up")],
        ),
    ];
    assert_eq!(calls.len(), wanted.len(), "{text}");
    for (number, (span, (events, status, told))) in calls.iter().zip(wanted).enumerate() {
        let own = own(span);
        assert_eq!(said(own, "Name"), "retry", "{span:?}");
        assert_eq!(said(own, "ParentSpanId"), said(request, "SpanId"), "{span:?}");
        assert!(said(own, "Status").starts_with(status), "{span:?}");
        let number = number.to_string();
        let mut all = vec![("operation", "fetch"), ("call", number.as_str()), ("max_attempts", "3")];
        all.extend(told);
        let found: Vec<_> = attributes(own).into_iter().filter(|(key, _)| is_ours(key)).collect();
        let (elapsed, found): (Vec<_>, Vec<_>) = found.into_iter().partition(|(key, _)| *key == "elapsed_ms");
        assert_eq!((found, elapsed.len()), (all, 1), "{span:?}");
        let mut delays = Vec::new();
        let mut names = Vec::new();
        for event in parts(span, "Event #") {
            for (key, value) in attributes(&event) {
                match key {
                    "event" => names.push(value),
                    "delay_ms" => delays.push(value),
                    _ => {
                        let shared =
                            ["level", "operation", "call", "attempt", "max_attempts", "class", "reason", "elapsed_ms"];
                        assert!(!is_ours(key) || shared.contains(&key), "{key} of {event:?}");
                    }
                }
            }
        }
        assert_eq!(names, events, "{span:?}");
        assert_eq!(delays, if events == THIRD { vec!["5", "10"] } else { Vec::new() }, "{span:?}");
    }
    Ok(())
}

// 12.5: its own instruments, with labels from bounded sets
#[tokio::test]
async fn opentelemetry_gets_numbers() -> Outcome {
    let done = run(&mut example("opentelemetry")).await?;
    let (_, metrics) = done.stdout.split_once("\nMetrics\n").expect("spans, then metrics");
    let mut found = Vec::new();
    for metric in parts(&metrics.lines().collect::<Vec<_>>(), "Metric #") {
        for point in parts(&metric, "DataPoint #") {
            let mut labels = attributes(&point);
            labels.sort_unstable();
            let value = [said(&point, "Value"), said(&point, "Count")].concat();
            found.push((said(&metric, "Name"), said(&metric, "Unit"), said(&metric, "Type"), value, labels));
        }
    }
    found.sort();
    let fetch = ("operation", "fetch");
    let sum = |name, value: &str, label| {
        let mut labels = vec![fetch, label];
        labels.sort_unstable();
        (name, "", "Sum", value.to_owned(), labels)
    };
    let mut wanted = vec![
        sum("retry.attempts_failed", "1", ("class", "forbidden")),
        sum("retry.attempts_failed", "2", ("class", "timeout")),
        sum("retry.calls", "1", ("outcome", "gave_up")),
        sum("retry.calls", "1", ("outcome", "recovered")),
        sum("retry.calls", "1", ("outcome", "succeeded")),
        sum("retry.gave_up", "1", ("reason", "permanent")),
        ("retry.wait", "s", "Histogram", "2".to_owned(), vec![fetch]),
    ];
    wanted.sort();
    assert_eq!(found, wanted, "{metrics}");
    Ok(())
}

// 12.5: all nine metrics, as their types, with their labels and their numbers
#[tokio::test]
async fn prometheus_scrapes_every_metric() -> Outcome {
    let done = run(&mut example("prometheus")).await?;
    assert!(done.status.success(), "{}{}", done.stdout, done.stderr);
    let types: BTreeMap<&str, &str> =
        done.stdout.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let wanted = [
        ("dlq_lost_total", "counter"),
        ("dlq_parked_total", "counter"),
        ("dlq_spilled_total", "counter"),
        ("retry_attempts_total", "counter"),
        ("retry_budget_tokens", "gauge"),
        ("retry_calls_total", "counter"),
        ("retry_gave_up_total", "counter"),
        ("retry_observer_panics_total", "counter"),
        ("retry_wait_seconds", "histogram"),
    ];
    assert_eq!(types, BTreeMap::from(wanted));
    let series = done.stdout.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    let mut series: BTreeMap<&str, f64> =
        series.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect();
    // what depends on the time
    let tokens = series.remove("retry_budget_tokens").expect("a gauge");
    assert!(tokens > 0.0 && tokens <= 100.0, "{tokens}");
    let waited = series.remove("retry_wait_seconds_sum").expect("a histogram");
    assert!(waited > 0.0 && waited < 20.0 * 0.01, "{waited} seconds: 20 waits of 10 ms at most");
    series.retain(|name, _| !name.starts_with("retry_wait_seconds_bucket"));
    let wanted = [
        ("dlq_lost_total", 0.0),
        ("dlq_parked_total{operation=\"fetch\",reason=\"exhausted\"}", 5.0),
        ("dlq_spilled_total", 0.0),
        ("retry_attempts_total{operation=\"fetch\",class=\"busy\"}", 25.0),
        ("retry_attempts_total{operation=\"fetch\",class=\"not_found\"}", 5.0),
        ("retry_attempts_total{operation=\"fetch\",class=\"ok\"}", 30.0),
        ("retry_calls_total{operation=\"fetch\",outcome=\"gave_up\"}", 10.0),
        ("retry_calls_total{operation=\"fetch\",outcome=\"recovered\"}", 10.0),
        ("retry_calls_total{operation=\"fetch\",outcome=\"succeeded\"}", 20.0),
        ("retry_gave_up_total{operation=\"fetch\",reason=\"exhausted\"}", 5.0),
        ("retry_gave_up_total{operation=\"fetch\",reason=\"gone\"}", 5.0),
        ("retry_observer_panics_total", 0.0),
        ("retry_wait_seconds_count", 20.0),
    ];
    assert_eq!(series, BTreeMap::from(wanted));
    Ok(())
}
