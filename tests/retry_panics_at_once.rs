//! A panic in a body reaches its caller at once. A call that swallowed one would stand still, or try again: here each is
//! polled by hand, once (SEMANTICS 11.3).
#![allow(clippy::panic)] // on purpose

use std::any::Any;
use std::cell::Cell;
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::observe::{Event, Observer, from_fn};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{Classify, Elapsed, Policy, Refused, Retry, retry, retrying};

#[derive(Debug, thiserror::Error, Classify)]
enum E {
    #[error(transparent)]
    #[classify(transparent)]
    Refused(#[from] Refused),
    #[error("slow")]
    #[classify(retryable)]
    Slow(#[from] Elapsed),
}

/// What a panic carries that nobody knows.
#[derive(Debug, PartialEq)]
struct Odd(u32);

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(work))
}

fn body(runs: &Cell<u32>) -> Result<u32, E> {
    runs.set(runs.get() + 1);
    panic_any(Odd(9))
}
async fn never(_: Duration) {
    pending::<()>().await;
}
macro_rules! calls {
    ($dlq:ident; $($name:literal($($options:tt)*);)*) => {
        [$(($name, |runs, dlq| {
            #[retry(name = "job", sleep = never, $($options)*)]
            async fn call(runs: &Cell<u32>, $dlq: &MemoryStore) -> Result<u32, E> {
                let _unused = $dlq;
                body(runs)
            }
            Box::pin(call(runs, dlq))
        })),*]
    };
}
type Call<'c> = Pin<Box<dyn Future<Output = Result<u32, E>> + 'c>>;
type New = for<'c> fn(&'c Cell<u32>, &'c MemoryStore) -> Call<'c>;
type Blocking = fn(&Cell<u32>, &MemoryStore) -> Result<u32, E>;

// 11.3: in the very poll it comes from, and in the very call: nobody waits for a panic that was swallowed
#[test]
fn a_panic_reaches_whoever_polls_at_once() {
    let attributes: [(&str, New); 7] = calls! {
        dlq;
        "nothing"();
        "a letter"(dead_letter(sink = dlq));
        "an observer"(observer = from_fn(|_: &Event<'_>| ()));
        "a limit"(attempt_timeout = "5s");
        "a cancel"(cancel = pending::<()>());
        "nested"(nested = detect);
        "everything"(dead_letter(sink = dlq), observer = from_fn(|_: &Event<'_>| ()), attempt_timeout = "5s", cancel = pending::<()>(), nested = detect, fallback = Ok(9));
    };
    let others: [(&str, New); 3] = [
        ("retrying!", |runs, _| Box::pin(async { retrying!(sleep = never; async -> Result<u32, E> { body(runs) }) })),
        ("retrying!, a letter", |runs, dlq| {
            Box::pin(async move {
                retrying!(name = "job", sleep = never, dead_letter(sink = dlq); async -> Result<u32, E> { body(runs) })
            })
        }),
        ("builder", |runs, _| {
            let retry = Retry::new(Policy::new()).observer(Arc::new(from_fn(|_: &Event<'_>| ())) as Arc<dyn Observer>);
            Box::pin(retry.run_with(never, move || async move { body(runs) }))
        }),
    ];
    for (name, call) in attributes.into_iter().chain(others) {
        let (runs, dlq) = (Cell::new(0), MemoryStore::new());
        let mut call = call(&runs, &dlq);
        let first = caught(|| call.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        let carried = first.err().and_then(|carried| carried.downcast::<Odd>().ok());
        assert_eq!((carried.as_deref(), runs.get()), (Some(&Odd(9)), 1), "with {name} its first poll panics");
    }
    let blocking: [(&str, Blocking); 5] = [
        ("nothing", |runs, _| {
            #[retry]
            fn call(runs: &Cell<u32>) -> Result<u32, E> {
                body(runs)
            }
            call(runs)
        }),
        ("a letter", |runs, dlq| {
            #[retry(name = "job", dead_letter(sink = dlq), fallback = Ok(9))]
            fn call(runs: &Cell<u32>, dlq: &MemoryStore) -> Result<u32, E> {
                body(runs)
            }
            call(runs, dlq)
        }),
        ("an observer", |runs, _| {
            #[retry(observer = from_fn(|_: &Event<'_>| ()))]
            fn call(runs: &Cell<u32>) -> Result<u32, E> {
                body(runs)
            }
            call(runs)
        }),
        ("retrying!", |runs, _| retrying!(max_retries = 2; -> Result<u32, E> { body(runs) })),
        ("builder", |runs, _| Retry::new(Policy::new()).run_blocking(|| body(runs))),
    ];
    for (name, call) in blocking {
        let (runs, dlq, _waits) = (Cell::new(0), MemoryStore::new(), VirtualWaits::start());
        let carried = caught(|| call(&runs, &dlq)).err().and_then(|carried| carried.downcast::<Odd>().ok());
        assert_eq!((carried.as_deref(), runs.get()), (Some(&Odd(9)), 1), "blocking with {name}");
    }
}
