// source: uv (4 x 4 = 16 requests), LiteLLM ((1 + N)^2); what: `nested` in a program without `test-util`, where async attempts are marked only where it is asked for: what is told, what is a single attempt, what neither is
// editions: 2021 2024
// level: core
#![deny(warnings)]
use retry_runtime::observe::{from_fn, set_listener, Event, Notice, Observer};
use retry_runtime::{retry, retrying, Classify, Elapsed, Nested, Policy, Refused, Retry};
use std::cell::Cell;
use std::future::{pending, poll_fn, Future};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
    #[classify(permanent)]
    Other,
}
impl From<Refused> for E { fn from(_: Refused) -> Self { E::Other } }
impl From<Elapsed> for E { fn from(_: Elapsed) -> Self { E::Other } }

static HEARD: Mutex<Vec<Notice>> = Mutex::new(Vec::new());

/// How often it was said of this operation that its attempts multiply.
fn told(operation: &str) -> usize {
    HEARD.lock().unwrap().iter().filter(|n| n.name == "nested_retry" && n.operation == operation).count()
}
fn busy(calls: &Cell<u32>) -> Result<u32, E> {
    calls.set(calls.get() + 1);
    Err(E::Busy)
}
/// A turn for others, on whatever polls this.
async fn turn() {
    let mut waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) { return Poll::Ready(()) }
        cx.waker().wake_by_ref();
        Poll::Pending
    }).await
}
/// A wait of no time; the limit of an attempt is never over.
async fn at_once(time: Duration) {
    if time > Duration::from_secs(30) { pending::<()>().await }
    turn().await
}

const QUICK: Policy = Policy::new().base_delay(Duration::ZERO);

type Call<'a> = Pin<Box<dyn Future<Output = Result<u32, E>> + 'a>>;
/// What an attempt does.
type Body<'a> = &'a dyn Fn() -> Call<'a>;
type Face = for<'a> fn(Body<'a>) -> Call<'a>;

/// A call of three attempts for each option; each takes a turn before its body's, so that it is polled more than once.
macro_rules! face {
    ($name:literal, $($options:tt)*) => {
        ($name, |body| {
            #[retry(name = $name, sleep = at_once, $($options)*)]
            async fn call(body: Body<'_>) -> Result<u32, E> {
                turn().await;
                body().await
            }
            Box::pin(call(body))
        })
    };
}

#[async_trait::async_trait(?Send)]
trait Fetch {
    async fn fetch(&self, body: Body<'_>) -> Result<u32, E>;
}
struct Detects;
#[async_trait::async_trait(?Send)]
impl Fetch for Detects {
    #[retry(name = "async_trait", sleep = at_once, nested = detect)]
    async fn fetch(&self, body: Body<'_>) -> Result<u32, E> { body().await }
}
struct OuterOnly;
#[async_trait::async_trait(?Send)]
impl Fetch for OuterOnly {
    #[retry(name = "async_trait, outer only", sleep = at_once, nested = outer_only)]
    async fn fetch(&self, body: Body<'_>) -> Result<u32, E> { body().await }
}

/// They are told of.
const DETECT: &[(&str, Face)] = &[
    face!("plain", nested = detect),
    face!("limited", nested = detect, attempt_timeout = "1m"),
    face!("cancellable", nested = detect, cancel = pending::<()>()),
    face!("watched", nested = detect, observer = from_fn(|_: &Event<'_>| ())),
    ("retrying!", |body| Box::pin(async move { retrying!(name = "retrying!", sleep = at_once, nested = detect; async -> Result<u32, E> { body().await }) })),
    ("builder", |body| Box::pin(async move { Retry::new(QUICK).name("builder").nested(Nested::Detect).run_with(at_once, || body()).await })),
    ("async_trait", |body| Box::pin(async move { Detects.fetch(body).await })),
];
/// They make a single attempt inside.
const OUTER_ONLY: &[(&str, Face)] = &[
    face!("plain, outer only", nested = outer_only),
    face!("limited, outer only", nested = outer_only, attempt_timeout = "1m"),
    face!("cancellable, outer only", nested = outer_only, cancel = pending::<()>()),
    face!("watched, outer only", nested = outer_only, observer = from_fn(|_: &Event<'_>| ())),
    ("retrying!, outer only", |body| Box::pin(async move { retrying!(name = "retrying!, outer only", sleep = at_once, nested = outer_only; async -> Result<u32, E> { body().await }) })),
    ("builder, outer only", |body| Box::pin(async move { Retry::new(QUICK).name("builder, outer only").nested(Nested::OuterOnly).run_with(at_once, || body()).await })),
    ("async_trait, outer only", |body| Box::pin(async move { OuterOnly.fetch(body).await })),
];
/// Nobody asked: they neither look nor mark.
const SILENT: &[(&str, Face)] = &[
    face!("silent", ),
    face!("silent, limited", attempt_timeout = "1m"),
    face!("silent, cancellable", cancel = pending::<()>()),
    face!("silent, watched", observer = from_fn(|_: &Event<'_>| ())),
    ("silent retrying!", |body| Box::pin(async move { retrying!(name = "silent retrying!", sleep = at_once; async -> Result<u32, E> { body().await }) })),
    ("silent builder", |body| Box::pin(async move { Retry::new(QUICK).name("silent builder").run_with(at_once, || body()).await })),
];

/// How often the innermost body runs when one call is made in another's attempts.
async fn runs(outer: Face, inner: Face) -> u32 {
    let calls = Cell::new(0);
    let innermost = || -> Call<'_> { Box::pin(async { busy(&calls) }) };
    let inside = || inner(&innermost);
    assert_eq!(outer(&inside).await, Err(E::Busy));
    calls.get()
}

#[retry(name = "blocking", base_delay = "0s")]
fn blocking(calls: &Cell<u32>) -> Result<u32, E> { busy(calls) }
#[retry(name = "blocking, outer only", base_delay = "0s", nested = outer_only)]
fn blocking_once(calls: &Cell<u32>) -> Result<u32, E> { busy(calls) }
#[retry(name = "around blocking ones", base_delay = "0s")]
fn blocking_around(body: &dyn Fn() -> Result<u32, E>) -> Result<u32, E> { body() }

#[retry(name = "inside", observer = observer, sleep = at_once, nested = detect)]
async fn inside(observer: &dyn Observer) -> Result<u32, E> { Err(E::Other) }
#[retry(name = "around", sleep = at_once, nested = detect)]
async fn around(observer: &dyn Observer) -> Result<u32, E> { inside(observer).await }
#[retry(name = "around both", sleep = at_once, nested = outer_only)]
async fn around_both(observer: &dyn Observer) -> Result<u32, E> { around(observer).await }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert!(set_listener(|notice| HEARD.lock().unwrap().push(notice.clone())));

    // nobody marked the outer attempt: with `test-util` these would be told of, and make a single attempt
    for (outer_name, outer) in SILENT {
        for (name, inner) in DETECT.iter().chain(OUTER_ONLY).chain(SILENT) {
            assert_eq!(runs(*outer, *inner).await, 9, "{name} in {outer_name}");
            assert_eq!(told(name), 0, "{name} in {outer_name}");
        }
    }
    // one that is asked marks its attempts; who looks inside is told of once, and `outer_only` makes one attempt
    for (outer_name, outer) in DETECT.iter().chain(OUTER_ONLY) {
        for (name, inner) in DETECT {
            assert_eq!(runs(*outer, *inner).await, 9, "{name} in {outer_name}");
            assert_eq!(told(name), 1, "{name} in {outer_name}");
        }
        for (name, inner) in OUTER_ONLY {
            assert_eq!(runs(*outer, *inner).await, 3, "{name} in {outer_name}");
            assert_eq!(told(name), 0, "{name} in {outer_name}");
        }
        for (name, inner) in SILENT {
            assert_eq!(runs(*outer, *inner).await, 9, "{name} in {outer_name}");
            assert_eq!(told(name), 0, "{name} in {outer_name} did not ask");
        }
    }
    // through one that is silent in between, marks are still there
    let calls = Cell::new(0);
    let innermost = || -> Call<'_> { Box::pin(async { busy(&calls) }) };
    let single = || OUTER_ONLY[0].1(&innermost);
    let between = || SILENT[0].1(&single);
    assert_eq!(DETECT[0].1(&between).await, Err(E::Busy));
    assert_eq!(calls.replace(0), 9);

    // a blocking call always looks and always marks
    let look = || -> Call<'_> { Box::pin(async { blocking(&calls) }) };
    let once = || -> Call<'_> { Box::pin(async { blocking_once(&calls) }) };
    assert_eq!(SILENT[0].1(&look).await, Err(E::Busy));
    assert_eq!((calls.replace(0), told("blocking")), (9, 0), "nobody marked the attempt");
    assert_eq!(SILENT[0].1(&once).await, Err(E::Busy));
    assert_eq!(calls.replace(0), 9);
    assert_eq!(DETECT[0].1(&look).await, Err(E::Busy));
    assert_eq!((calls.replace(0), told("blocking")), (9, 1));
    assert_eq!(DETECT[0].1(&once).await, Err(E::Busy));
    assert_eq!(calls.replace(0), 3);
    assert_eq!(blocking_around(&|| blocking_once(&calls)), Err(E::Busy));
    assert_eq!(calls.replace(0), 3);
    assert_eq!(blocking_around(&|| futures::executor::block_on(single())), Err(E::Busy));
    assert_eq!(calls.replace(0), 3, "an async one in a blocking one");

    // events carry the depth
    let depths = Mutex::new(Vec::new());
    let observer = from_fn(|event: &Event<'_>| depths.lock().unwrap().push((event.name(), event.depth)));
    for wanted in [0, 1, 2] {
        let end = match wanted {
            0 => inside(&observer).await,
            1 => around(&observer).await,
            _ => around_both(&observer).await,
        };
        assert_eq!(end, Err(E::Other));
        let seen = std::mem::take(&mut *depths.lock().unwrap());
        assert_eq!(seen, [("attempt_started", wanted), ("attempt_failed", wanted), ("gave_up", wanted)]);
    }
    let heard = HEARD.lock().unwrap();
    let said: Vec<_> = heard.iter().filter(|n| n.operation == "inside").map(|n| n.message.as_str()).collect();
    assert_eq!(said.len(), 1, "once per site: {said:?}");
    assert!(said[0].contains("inside an attempt of `around` (depth 1)"), "{said:?}");
}
