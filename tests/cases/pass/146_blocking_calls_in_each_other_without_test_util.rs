// source: uv (4 x 4 = 16 requests); what: blocking calls in each other, in a program without `test-util`: told of with and without `nested = detect`, a single attempt with `outer_only`, and a mark ends with its attempt
// editions: 2021 2024
// level: core
#![deny(warnings)]
use retry_runtime::observe::{set_listener, Notice};
use retry_runtime::{retry, retrying, Classify, Nested, Policy, Retry};
use std::cell::Cell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Mutex;
use std::time::Duration;

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

static HEARD: Mutex<Vec<Notice>> = Mutex::new(Vec::new());

fn told(operation: &str) -> usize {
    HEARD.lock().unwrap().iter().filter(|n| n.name == "nested_retry" && n.operation == operation).count()
}
fn busy(calls: &Cell<u32>) -> Result<u32, E> {
    calls.set(calls.get() + 1);
    Err(E::Busy)
}

const QUICK: Policy = Policy::new().base_delay(Duration::ZERO);

type Body<'a> = &'a dyn Fn() -> Result<u32, E>;
type Face = fn(Body<'_>) -> Result<u32, E>;

macro_rules! face {
    ($name:literal $(, $option:ident = $value:ident)?) => {
        ($name, |body| {
            #[retry(name = $name, base_delay = "0s" $(, $option = $value)?)]
            fn call(body: Body<'_>) -> Result<u32, E> { body() }
            call(body)
        })
    };
}
const TELL: &[(&str, Face)] = &[
    face!("silent"),
    face!("detect", nested = detect),
    ("retrying!", |body| retrying!(name = "retrying!", base_delay = "0s"; -> Result<u32, E> { body() })),
    ("retrying!, detect", |body| retrying!(name = "retrying!, detect", base_delay = "0s", nested = detect; -> Result<u32, E> { body() })),
    ("builder", |body| Retry::new(QUICK).name("builder").run_blocking(body)),
    ("builder, detect", |body| Retry::new(QUICK).name("builder, detect").nested(Nested::Detect).run_blocking(body)),
];
const OUTER_ONLY: &[(&str, Face)] = &[
    face!("outer only", nested = outer_only),
    ("retrying!, outer only", |body| retrying!(name = "retrying!, outer only", base_delay = "0s", nested = outer_only; -> Result<u32, E> { body() })),
    ("builder, outer only", |body| Retry::new(QUICK).name("builder, outer only").nested(Nested::OuterOnly).run_blocking(body)),
];

fn main() {
    assert!(set_listener(|notice| HEARD.lock().unwrap().push(notice.clone())));
    let calls = Cell::new(0);
    for (name, face) in TELL.iter().chain(OUTER_ONLY) {
        assert_eq!(face(&|| busy(&calls)), Err(E::Busy));
        assert_eq!((calls.replace(0), told(name)), (3, 0), "{name} in nothing");
    }
    for (outer_name, outer) in TELL.iter().chain(OUTER_ONLY) {
        for (name, inner) in TELL {
            assert_eq!(outer(&|| inner(&|| busy(&calls))), Err(E::Busy));
            assert_eq!((calls.replace(0), told(name)), (9, 1), "{name} in {outer_name}");
        }
        for (name, inner) in OUTER_ONLY {
            assert_eq!(outer(&|| inner(&|| busy(&calls))), Err(E::Busy));
            assert_eq!((calls.replace(0), told(name)), (3, 0), "{name} in {outer_name}");
        }
        // after it, after its panic, and on another thread nothing is around
        let (_, single) = OUTER_ONLY[0];
        assert_eq!(outer(&|| Ok(1)), Ok(1));
        assert_eq!(single(&|| busy(&calls)), Err(E::Busy));
        assert_eq!(calls.replace(0), 3, "after {outer_name}");
        assert!(catch_unwind(AssertUnwindSafe(|| outer(&|| resume_unwind(Box::new(()))))).is_err());
        assert_eq!(single(&|| busy(&calls)), Err(E::Busy));
        assert_eq!(calls.replace(0), 3, "after a panic in {outer_name}");
        let elsewhere = outer(&|| {
            let runs = std::thread::spawn(move || {
                let calls = Cell::new(0);
                assert_eq!(single(&|| busy(&calls)), Err(E::Busy));
                calls.get()
            });
            Ok(runs.join().unwrap())
        });
        assert_eq!(elsewhere, Ok(3), "on a thread of its own, started by {outer_name}");
    }
}
