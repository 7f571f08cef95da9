//! Feature `tracing`: a span for each call, an event for everything in it, and notices.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task;

use retry_runtime::dead_letter::{DeadLetter, MemoryStore, Parking, Ticket};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::observe::{Notice, TracingObserver};
use retry_runtime::reply::Reply;
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{Classify, DeadLetterSink, Verdict, retry};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

type Fields = BTreeMap<String, String>;

#[derive(Default)]
struct Collected {
    /// Name and fields, and the name of the span around.
    spans: Vec<(String, Fields, Option<String>)>,
    closed: usize,
    /// Level, fields, and the name of the span around.
    events: Vec<(Level, Fields, Option<String>)>,
}

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Collected>>);

struct Into<'f>(&'f mut Fields);

impl Visit for Into<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

/// Where a span is in the list.
struct Place(usize);

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Collector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let mut fields = Fields::new();
        attributes.record(&mut Into(&mut fields));
        let span = cx.span(id).unwrap();
        let around = span.parent().map(|parent| parent.name().to_owned());
        let mut collected = self.0.lock().unwrap();
        span.extensions_mut().insert(Place(collected.spans.len()));
        collected.spans.push((span.name().to_owned(), fields, around));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        let span = cx.span(id).unwrap();
        let place = span.extensions().get::<Place>().unwrap().0;
        values.record(&mut Into(&mut self.0.lock().unwrap().spans[place].1));
    }

    fn on_event(&self, event: &tracing::Event<'_>, cx: Context<'_, S>) {
        assert_eq!(event.metadata().target(), "retry_runtime");
        let mut fields = Fields::new();
        event.record(&mut Into(&mut fields));
        let around = cx.event_span(event).map(|span| span.name().to_owned());
        self.0.lock().unwrap().events.push((*event.metadata().level(), fields, around));
    }

    fn on_close(&self, _: Id, _: Context<'_, S>) {
        self.0.lock().unwrap().closed += 1;
    }
}

fn collected(run: impl FnOnce()) -> Collected {
    let collector = Collector::default();
    let subscriber = tracing_subscriber::registry().with(collector.clone());
    let _waits = VirtualWaits::start();
    tracing::subscriber::with_default(subscriber, run);
    std::mem::take(&mut collector.0.lock().unwrap())
}

fn fields(pairs: &[(&str, &str)]) -> Fields {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[derive(Debug, PartialEq, thiserror::Error)]
enum E {
    #[error("the secret is 1234")]
    Limited,
    #[error("gone")]
    Gone,
}

impl Classify for E {
    fn classify(&self) -> Verdict {
        match self {
            Self::Limited => Verdict::retryable("rate_limit").code(429),
            Self::Gone => Verdict::gone("gone"),
        }
    }
}

#[retry(name = "fetch", max_retries = 1, base_delay = "1500ms", observer = TracingObserver, dead_letter(sink = dlq, job_id = "a1", payload = secret))]
fn fetch(dlq: &dyn DeadLetterSink, secret: &str) -> Result<u32, E> {
    Err(E::Limited)
}

#[retry(name = "quick", observer = TracingObserver)]
fn quick(succeeds: bool) -> Result<u32, E> {
    if succeeds { Ok(1) } else { Err(E::Gone) }
}

// 12.1: field names and levels
#[test]
fn a_call_is_a_span_and_its_events_are_lines() {
    let mut all = collected(|| {
        let around = tracing::info_span!(target: "retry_runtime", "request");
        let _entered = around.enter();
        assert_eq!(fetch(&MemoryStore::new(), "4321"), Err(E::Limited));
    });
    // not the same in each run
    let call = all.spans[1].1["call"].clone();
    let letter = all.events.last().unwrap().1["message"].rsplit(' ').next().unwrap().to_owned();

    assert_eq!((all.spans.len(), all.closed), (2, 2));
    let (name, mut span, around) = all.spans.remove(1);
    assert_eq!((name.as_str(), around.as_deref()), ("retry", Some("request")));
    assert!(span.remove("elapsed_ms").unwrap().parse::<u64>().unwrap() >= 1500);
    let expected = [
        ("operation", "fetch"),
        ("call", &call),
        ("max_attempts", "2"),
        ("attempts", "2"),
        ("class", "rate_limit"),
        ("reason", "exhausted"),
        ("outcome", "gave_up"),
    ];
    assert_eq!(span, fields(&expected));

    let of_call = [("operation", "fetch"), ("call", &call), ("max_attempts", "2")];
    let failed = [("class", "rate_limit"), ("code", "429")];
    let expected = [
        (
            Level::TRACE,
            vec![("event", "attempt_started"), ("attempt", "1"), ("elapsed_ms", "0")],
            "fetch: attempt 1 of 2 started",
        ),
        (
            Level::DEBUG,
            [&[("event", "attempt_failed"), ("attempt", "1"), ("elapsed_ms", "0")], &failed[..]].concat(),
            "fetch: attempt 1 of 2 failed (rate_limit 429) after 0ns",
        ),
        (
            Level::WARN,
            [&[("event", "retry_scheduled"), ("attempt", "1"), ("delay_ms", "1500"), ("elapsed_ms", "0")], &failed[..]]
                .concat(),
            "fetch: attempt 1 of 2 failed (rate_limit 429), retrying in 1.5s",
        ),
        (
            Level::TRACE,
            [&[("event", "attempt_started"), ("attempt", "2"), ("elapsed_ms", "1500")], &failed[..]].concat(),
            "fetch: attempt 2 of 2 started",
        ),
        (
            Level::DEBUG,
            [&[("event", "attempt_failed"), ("attempt", "2"), ("elapsed_ms", "1500")], &failed[..]].concat(),
            "fetch: attempt 2 of 2 failed (rate_limit 429) after 0ns",
        ),
        (
            Level::ERROR,
            [&[("event", "gave_up"), ("attempt", "2"), ("reason", "exhausted"), ("elapsed_ms", "1500")], &failed[..]]
                .concat(),
            "fetch: gave up after 2 of 2 attempts in 1.5s (exhausted): rate_limit 429",
        ),
        (
            Level::WARN,
            [
                &[
                    ("event", "parked"),
                    ("attempt", "2"),
                    ("reason", "exhausted"),
                    ("job_id", "a1"),
                    ("elapsed_ms", "1500"),
                ],
                &failed[..],
            ]
            .concat(),
            &format!("fetch: job a1 parked (exhausted) as {letter}"),
        ),
    ];
    // The waits are virtual and exact; what else took time is not.
    let without_times = |text: &str| {
        let timed = [(" failed ", " after "), (" gave up ", " in ")];
        let (_, from) = timed.into_iter().find(|(what, _)| text.contains(what))?;
        let (said, time) = text.split_once(from)?;
        Some(format!("{said}{}", time.find(" (").map_or("", |end| &time[end..])))
    };
    let without_times = |text: &str| without_times(text).unwrap_or_else(|| text.to_owned());
    assert_eq!(all.events.len(), expected.len());
    for ((level, mut found, around), (expected_level, pairs, message)) in all.events.into_iter().zip(expected) {
        let said = found.remove("message").unwrap();
        assert_eq!(without_times(&said), without_times(message));
        assert_eq!((level, around.as_deref()), (expected_level, Some("retry")), "{said}");
        let mut expected = fields(&[&of_call[..], &pairs].concat());
        let [elapsed, least] =
            [&mut found, &mut expected].map(|fields| fields.remove("elapsed_ms").unwrap().parse::<u64>().unwrap());
        assert!(elapsed >= least, "{said}: {elapsed} ms");
        assert_eq!(found, expected, "{said}");
        // 12.3
        assert!(!said.contains("4321") && !said.contains("1234"), "{said}");
    }
}

#[retry(name = "hangs", observer = TracingObserver)]
async fn hangs() -> Result<u32, E> {
    pending().await
}

#[retry(name = "falls_back", max_retries = 0, observer = TracingObserver, fallback = Ok(2))]
fn falls_back() -> Result<u32, E> {
    Err(E::Limited)
}

// 12.1: what needs somebody to look is louder than what was foreseen
#[test]
fn levels_of_what_ends_otherwise() {
    struct Spills;
    impl DeadLetterSink for Spills {
        fn submit(&self, _: DeadLetter) -> Ticket {
            let because = StoreError::new(StoreErrorKind::Full, "no space left");
            Reply::ready(Parking::Spilled { path: "spill".into(), because })
        }
    }
    let level = |name: &str, run: &dyn Fn()| {
        let events = collected(run).events.into_iter();
        let of_name = events.filter(|(_, fields, _)| fields.get("event").is_some_and(|event| event == name));
        of_name.map(|(level, ..)| level).next_back()
    };
    let dropped = level("gave_up", &|| {
        let mut call = pin!(hangs());
        assert!(call.as_mut().poll(&mut task::Context::from_waker(task::Waker::noop())).is_pending());
    });
    assert_eq!(dropped, Some(Level::WARN));
    assert_eq!(level("fallback", &|| assert_eq!(falls_back(), Ok(2))), Some(Level::WARN));
    assert_eq!(level("spilled", &|| assert!(fetch(&Spills, "").is_err())), Some(Level::ERROR));
}

// 12.1: what is no trouble is not loud
#[test]
fn levels_say_how_bad_it_is() {
    struct Nowhere;
    impl DeadLetterSink for Nowhere {
        fn submit(&self, _: DeadLetter) -> Ticket {
            Reply::ready(Parking::Lost { because: StoreError::new(StoreErrorKind::Full, "no space left") })
        }
    }
    let levels = |run: &dyn Fn()| {
        let all = collected(run);
        all.events.into_iter().map(|(level, fields, _)| (level, fields.get("event").cloned())).collect::<Vec<_>>()
    };
    let event = |level, name: &str| (level, Some(name.to_owned()));
    let succeeds = levels(&|| assert!(quick(true).is_ok()));
    assert_eq!(succeeds, [event(Level::TRACE, "attempt_started"), event(Level::TRACE, "succeeded")]);
    let gone = levels(&|| assert!(quick(false).is_err()));
    assert_eq!(gone[2], event(Level::INFO, "gave_up"));
    let lost = levels(&|| assert!(fetch(&Nowhere, "").is_err()));
    // a notice says it as well, before the event does
    assert_eq!(lost[6..], [(Level::ERROR, None), event(Level::ERROR, "park_failed")]);
}

#[test]
fn a_notice_is_an_event_where_a_subscriber_wants_it() {
    assert!(!Notice::warning("unheard", "fetch", "nobody listens").say());
    let all = collected(|| {
        assert!(Notice::warning("store_up", "", "it works again").say());
        assert!(Notice::error("lost", "fetch", "job a1").say());
    });
    let expected = [
        (Level::WARN, fields(&[("notice", "store_up"), ("operation", ""), ("message", "it works again")]), None),
        (Level::ERROR, fields(&[("notice", "lost"), ("operation", "fetch"), ("message", "job a1")]), None),
    ];
    assert_eq!(all.events, expected);
}
