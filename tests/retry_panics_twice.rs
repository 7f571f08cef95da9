//! A panic that ends in the library, and whose payload panics once more when it is dropped, ends there as well.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Mutex;

use retry_runtime::observe::{Event, Notice, from_fn, set_listener};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{GaveUp, Policy, Retry, RetryContext, StopReason, Verdict, retry};

/// Panics when it is dropped.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("once more: {}", self.0);
    }
}

#[derive(Debug, PartialEq)]
struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic_any(Bomb("in the text"))
    }
}

impl std::error::Error for Busy {}

/// What goes on out of a call.
fn of<T>(call: impl FnOnce() -> T) -> T {
    let _waits = VirtualWaits::start();
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        std::mem::forget(panic);
        panic!("a panic came out of the call")
    })
}

fn bomb(_: &Busy) -> Verdict {
    panic_any(Bomb("in the classifier"))
}

fn retryable(_: &Busy) -> Verdict {
    Verdict::retryable("busy")
}

static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

// 5.3: everything in one test, for there is one listener
#[test]
fn a_payload_that_panics_again_ends_there() {
    #[retry(classify = bomb)]
    fn classified() -> Result<(), Busy> {
        Err(Busy)
    }
    #[retry(classify = bomb, context = context, fallback = Err(error))]
    fn with_context(context: &mut RetryContext) -> Result<(), Busy> {
        Err(Busy)
    }
    #[retry(classify = retryable, context = context)]
    fn told(context: &mut RetryContext) -> Result<(), Busy> {
        Err(Busy)
    }
    assert!(set_listener(|notice: &Notice| {
        HEARD.lock().unwrap().push(notice.name.to_owned());
        panic_any(Bomb("in the listener"))
    }));
    assert_eq!(of(classified), Err(Busy));
    let mut context = RetryContext::new();
    assert_eq!(of(|| with_context(&mut context)), Err(Busy));
    assert_eq!(context.stop_reason(), Some(StopReason::ClassifierFailed));
    assert_eq!(of(|| told(&mut context)), Err(Busy));
    assert_eq!((context.stop_reason(), context.attempts()), (Some(StopReason::Exhausted), 3));
    assert_eq!(context.history()[0].message, "<the error's text panicked: no message>");
    let observer = from_fn(|_: &Event<'_>| panic_any(Bomb("in the observer")));
    let end: Result<(), GaveUp<Busy>> = of(|| {
        let retry = Retry::new(Policy::new()).classify(bomb as fn(&Busy) -> Verdict).observer(&observer);
        retry.run_blocking_reporting(|| Err(Busy))
    });
    assert_eq!(end.unwrap_err().reason(), StopReason::ClassifierFailed);
    let heard = HEARD.lock().unwrap();
    assert!(heard.iter().filter(|name| *name == "classifier_failed").count() >= 3, "{heard:?}");
    assert!(heard.iter().any(|name| name == "observer_panicked"), "{heard:?}");
}
