//! Feature `metrics`: exactly the documented names and labels, in seconds; and the dashboards that show them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does
#![allow(clippy::float_cmp)] // small whole numbers, and halves of them
#![allow(clippy::needless_pass_by_value, clippy::trivially_copy_pass_by_ref)] // a call takes what its users give it

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::{Context, Waker};

use metrics::with_local_recorder;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use retry_runtime::dead_letter::{DeadLetter, MemoryStore, Parking, Ticket};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::observe::{Event, MetricsObserver, Observer, from_fn};
use retry_runtime::reply::Reply;
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{Budget, Classify, DeadLetterSink, StopReason, retry};

#[derive(Debug, Clone, PartialEq, Classify)]
enum E {
    #[classify(retryable, class = "timeout")]
    Slow,
    #[classify(permanent)]
    Denied,
}

/// A metric with its labels, as Prometheus writes it.
type Numbers = BTreeMap<String, f64>;

fn counted(run: impl FnOnce(&MetricsObserver)) -> Numbers {
    let recorder = DebuggingRecorder::new();
    let _waits = VirtualWaits::start();
    with_local_recorder(&recorder, || run(&MetricsObserver::new()));
    let number = |value| match value {
        DebugValue::Counter(count) => Some(u32::try_from(count).unwrap().into()),
        DebugValue::Gauge(level) => Some(level.into_inner()),
        DebugValue::Histogram(waits) => waits.into_iter().map(f64::from).reduce(|a, b| a + b),
    };
    let all = recorder.snapshotter().snapshot().into_vec();
    all.into_iter()
        .filter_map(|(key, unit, text, value)| {
            assert!(text.is_some(), "{key:?} is described");
            let name = key.key().name();
            assert_eq!(unit.is_some(), name.ends_with("_seconds"), "{name}");
            let labels: Vec<String> =
                key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            Some((format!("{name}{{{}}}", labels.join(",")), number(value)?))
        })
        .collect()
}

fn numbers(pairs: &[(&str, f64)]) -> Numbers {
    let zero = ["dlq_spilled_total{}", "dlq_lost_total{}", "retry_observer_panics_total{}"].map(|name| (name, 0.0));
    zero.iter().chain(pairs).map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// Everything that is counted of a call.
#[retry(name = "work", base_delay = "1500ms", max_retries = 1, observer = observer, budget = budget, fallback = second.clone(), dead_letter(sink = sink))]
fn work(
    observer: &impl Observer,
    budget: &Budget,
    sink: &dyn DeadLetterSink,
    first: &dyn Fn() -> Result<u32, E>,
    second: Result<u32, E>,
) -> Result<u32, E> {
    first()
}

fn budget() -> Budget {
    let budget = Budget::new().min_per_second(0).ratio(1.0);
    (0..5).for_each(|_| budget.succeeded());
    budget
}

// 12.5
#[test]
fn a_first_success() {
    let found = counted(|observer| {
        assert_eq!(work(observer, &budget(), &MemoryStore::new(), &|| Ok(1), Ok(0)), Ok(1));
    });
    let expected = [
        ("retry_calls_total{operation=work,outcome=succeeded}", 1.0),
        ("retry_attempts_total{operation=work,class=ok}", 1.0),
        ("retry_budget_tokens{}", 6.0),
    ];
    assert_eq!(found, numbers(&expected));
}

// 12.5: seconds, and the second route's attempt
#[test]
fn retries_a_fallback_and_a_letter() {
    let denied = || Err(E::Denied);
    let slow = || Err(E::Slow);
    let found = counted(|observer| {
        assert_eq!(work(observer, &budget(), &MemoryStore::new(), &slow, denied()), denied());
        assert_eq!(work(observer, &budget(), &MemoryStore::new(), &slow, Ok(7)), Ok(7));
        let empty = Budget::new().capacity(0);
        assert_eq!(work(observer, &empty, &MemoryStore::new(), &slow, denied()), denied());
    });
    let expected = [
        ("retry_calls_total{operation=work,outcome=gave_up}", 2.0),
        ("retry_calls_total{operation=work,outcome=fallback}", 1.0),
        ("retry_attempts_total{operation=work,class=timeout}", 5.0),
        ("retry_attempts_total{operation=work,class=denied}", 2.0),
        ("retry_attempts_total{operation=work,class=ok}", 1.0),
        ("retry_gave_up_total{operation=work,reason=exhausted}", 1.0),
        ("retry_gave_up_total{operation=work,reason=budget_denied}", 1.0),
        ("retry_wait_seconds{}", 3.0),
        ("retry_budget_tokens{}", 0.0),
        ("dlq_parked_total{operation=work,reason=exhausted}", 1.0),
        ("dlq_parked_total{operation=work,reason=budget_denied}", 1.0),
    ];
    assert_eq!(found, numbers(&expected));
}

struct Full(bool);

impl DeadLetterSink for Full {
    fn submit(&self, _: DeadLetter) -> Ticket {
        let because = StoreError::new(StoreErrorKind::Full, "no space left");
        Reply::ready(if self.0 { Parking::Spilled { path: "x".into(), because } } else { Parking::Lost { because } })
    }
}

// 11.2: what the store did not take
#[test]
fn letters_that_are_spilled_or_lost() {
    #[retry(name = "park", observer = observer, dead_letter(sink = sink))]
    fn park(observer: &MetricsObserver, sink: &Full) -> Result<u32, E> {
        Err(E::Denied)
    }
    let found = counted(|observer| {
        for spills in [true, true, false] {
            assert!(park(observer, &Full(spills)).is_err());
        }
    });
    assert_eq!((found["dlq_spilled_total{}"], found["dlq_lost_total{}"]), (2.0, 1.0));
    assert!(!found.keys().any(|name| name.starts_with("dlq_parked_total")));
}

// 12.2
#[test]
fn panics_of_any_observer_are_counted() {
    let found = counted(|observer| {
        let broken = from_fn(|_: &Event<'_>| resume_unwind(Box::new("the observer panicked")));
        assert_eq!(work(&(broken, observer), &budget(), &MemoryStore::new(), &|| Ok(1), Ok(0)), Ok(1));
    });
    assert_eq!(found["retry_observer_panics_total{}"], 2.0);
}

// Every attempt that began is counted when it ends, however that is.
#[test]
fn an_attempt_that_is_cut_off_is_counted_by_what_cut_it() {
    #[retry(name = "cut", observer = observer)]
    async fn hangs(observer: &MetricsObserver) -> Result<u32, E> {
        pending().await
    }
    #[retry(name = "cut", observer = observer)]
    fn panics(observer: &MetricsObserver) -> Result<u32, E> {
        resume_unwind(Box::new("the body panicked"))
    }
    let found = counted(|observer| {
        assert!(pin!(hangs(observer)).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| panics(observer))).is_err());
    });
    for reason in ["dropped", "panicked"] {
        assert_eq!(found[&format!("retry_attempts_total{{operation=cut,class={reason}}}")], 1.0);
        assert_eq!(found[&format!("retry_gave_up_total{{operation=cut,reason={reason}}}")], 1.0);
    }
}

/// Names, each with its labels, of all that is emitted.
fn emitted() -> BTreeMap<String, BTreeSet<String>> {
    let found = counted(|observer| {
        let _parked = work(observer, &budget(), &MemoryStore::new(), &|| Err(E::Slow), Err(E::Denied));
    });
    found
        .into_keys()
        .map(|key| {
            let (name, labels) = key.strip_suffix('}').and_then(|key| key.split_once('{')).unwrap();
            let labels = labels.split(',').filter_map(|pair| pair.split_once('=')).map(|(label, _)| label.to_owned());
            (name.to_owned(), labels.collect())
        })
        .collect()
}

// 12.5: exactly these
#[test]
fn the_names_and_labels_are_the_documented_ones() {
    let table = include_str!("../retry-runtime/src/observe/to_metrics.rs");
    let rows = table.lines().filter_map(|line| line.strip_prefix("/// | `"));
    let documented: BTreeMap<String, BTreeSet<String>> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            let labels = cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect();
            (cells[0].trim().trim_end_matches('`').to_owned(), labels)
        })
        .collect();
    assert_eq!(documented.len(), 9);
    assert_eq!(emitted(), documented);
}

/// The metrics of an expression, each with what stands in braces behind it.
fn metrics(expr: &str) -> Vec<(String, &str)> {
    let part_of_a_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut found, mut rest) = (Vec::new(), expr);
    while let Some(start) = rest.find(part_of_a_word) {
        let word = &rest[start..];
        let (word, behind) = word.split_at(word.find(|c| !part_of_a_word(c)).unwrap_or(word.len()));
        if word.starts_with("retry_") || word.starts_with("dlq_") {
            let plain = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| word.strip_suffix(suffix));
            let selected = behind.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            found.push((plain.unwrap_or(word).to_owned(), selected.map_or("", |(inside, _)| inside)));
        }
        rest = behind;
    }
    found
}

/// What expressions ask for: each metric with the labels behind it, or by which its expression sums.
fn used(exprs: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for expr in exprs {
        let metrics = metrics(expr);
        assert!(!metrics.is_empty(), "{expr} asks for nothing of ours");
        let sums = expr.split("by (").skip(1).filter_map(|rest| rest.split_once(')')).map(|(inside, _)| inside);
        let sums: Vec<&str> = sums.flat_map(|inside| inside.split(',')).collect();
        for (metric, selected) in metrics {
            let selected = selected.split(',').filter_map(|pair| pair.split(['=', '!']).next());
            let labels = selected.chain(sums.iter().copied()).map(str::trim);
            used.entry(metric)
                .or_default()
                .extend(labels.filter(|label| *label != "le" && !label.is_empty()).map(str::to_owned));
        }
    }
    used
}

/// All strings under a key, wherever it stands.
fn strings(value: &serde_json::Value, key: &str, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (name, value) in map {
                match value {
                    serde_json::Value::String(text) if name == key => into.push(text.clone()),
                    value => strings(value, key, into),
                }
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| strings(value, key, into)),
        _ => {}
    }
}

// 12.5: every name that is used exists, and every name that exists is shown
#[test]
fn the_dashboard_shows_what_is_emitted() {
    let dashboard: serde_json::Value = serde_json::from_str(include_str!("../dashboards/grafana.json")).unwrap();
    let mut exprs = Vec::new();
    strings(&dashboard, "expr", &mut exprs);
    let (used, emitted) = (used(&exprs), emitted());
    let names = |of: &BTreeMap<String, BTreeSet<String>>| of.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&used), names(&emitted));
    for (name, labels) in &used {
        assert_eq!(labels, &emitted[name], "labels of {name}");
    }
    // every panel says what it shows, and has a place of its own
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        if panel["type"] != "row" {
            assert!(panel["description"].as_str().is_some_and(|text| text.len() > 20), "{}", panel["title"]);
        }
    }
    assert!(panels.len() >= 9);
}

#[test]
fn the_alerts_ask_for_what_is_emitted_and_say_what_to_do() {
    let alerts = include_str!("../dashboards/alerts.yml");
    let after = |key: &str| -> Vec<String> {
        alerts.lines().filter_map(|line| line.trim().strip_prefix(key)).map(|rest| rest.trim().to_owned()).collect()
    };
    let (names, exprs) = (after("- alert:"), after("expr:"));
    assert!(names.len() >= 6);
    for part in ["severity:", "summary:", "runbook:"] {
        assert_eq!(after(part).len(), names.len(), "{part}");
    }
    assert_eq!(exprs.len(), names.len());
    let emitted = emitted();
    for (name, labels) in used(&exprs) {
        let known = emitted.get(&name).unwrap_or_else(|| panic!("{name} is not emitted"));
        assert!(labels.is_subset(known), "{name} has no label of {labels:?}");
    }
    for lost in ["dlq_lost_total", "dlq_spilled_total", "retry_observer_panics_total"] {
        assert!(exprs.iter().any(|expr| expr.contains(lost)), "no alert on {lost}");
    }
    // a final answer and a call that was meant to end page nobody
    let given_up: Vec<_> = exprs.iter().filter(|expr| expr.contains("retry_gave_up_total{reason!~")).collect();
    assert_eq!(given_up.len(), 1, "{exprs:?}");
    for reason in [StopReason::Gone, StopReason::Cancelled, StopReason::Dropped] {
        assert!(given_up[0].contains(reason.as_str()), "{reason} is no failure");
    }
}
