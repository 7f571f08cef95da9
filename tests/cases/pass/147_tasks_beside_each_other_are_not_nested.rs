// source: thread-local marks that outlive a poll; what: without `test-util` too, a call is nested only in the attempt that polls it: not beside one, not in a task that one starts, not after one that was dropped or panicked, on one thread and on several
// editions: 2021 2024
// level: core
#![deny(warnings)]
use futures::FutureExt;
use retry_runtime::observe::set_listener;
use retry_runtime::{retry, Classify};
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::yield_now;

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

async fn at_once(_: Duration) { yield_now().await }

/// Three attempts, but in another call's attempt it is one.
#[retry(name = "single", nested = outer_only, sleep = at_once)]
async fn single(calls: &AtomicU32) -> Result<u32, E> {
    calls.fetch_add(1, SeqCst);
    yield_now().await;
    Err(E::Busy)
}
/// It would be told of.
#[retry(name = "told", nested = detect, sleep = at_once)]
async fn told() -> Result<u32, E> {
    yield_now().await;
    Err(E::Busy)
}
async fn attempts() -> u32 {
    let calls = AtomicU32::new(0);
    assert_eq!(single(&calls).await, Err(E::Busy));
    assert_eq!(told().await, Err(E::Busy));
    calls.into_inner()
}
/// Is in the middle of an attempt for many polls.
#[retry(name = "long", nested = detect)]
async fn long(turns: u32) -> Result<u32, E> {
    for _ in 0..turns { yield_now().await }
    Ok(turns)
}
#[retry(name = "hangs", nested = detect, attempt_timeout = "1h")]
async fn hangs() -> Result<u32, retry_runtime::GaveUp<E>> { pending().await }
#[retry(name = "panics", nested = detect)]
async fn panics(early: bool) -> Result<u32, E> {
    if !early { yield_now().await }
    std::panic::resume_unwind(Box::new("on purpose"))
}
/// Its attempt waits for a task of its own.
#[retry(name = "starts a task", nested = detect)]
async fn starts() -> Result<u32, E> {
    Ok(tokio::spawn(attempts()).await.unwrap())
}
#[retry(name = "blocking around a runtime")]
fn starts_on(runtime: &tokio::runtime::Handle) -> Result<u32, E> {
    let (send, answer) = std::sync::mpsc::channel();
    runtime.spawn(async move { send.send(attempts().await) });
    Ok(answer.recv().unwrap())
}

async fn everything() {
    assert_eq!(futures::join!(long(50), attempts(), long(50)), (Ok(50), 3, Ok(50)), "beside it, in one task");
    assert_eq!(starts().await, Ok(3), "in a task that it starts");
    {
        let mut hanging = Box::pin(hangs());
        assert!(futures::poll!(&mut hanging).is_pending());
        assert_eq!(attempts().await, 3, "while another hangs in its attempt");
        drop(hanging);
        assert_eq!(attempts().await, 3, "after that one was dropped");
    }
    for early in [true, false] {
        assert!(AssertUnwindSafe(panics(early)).catch_unwind().await.is_err());
        assert_eq!(attempts().await, 3, "after a panic");
    }
    let running = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..64).map(|n| {
        let running = Arc::clone(&running);
        tokio::spawn(async move {
            running.fetch_add(1, SeqCst);
            if n % 2 == 0 { assert_eq!(long(100).await, Ok(100)) } else { assert_eq!(attempts().await, 3) }
        })
    }).collect();
    for task in tasks { task.await.unwrap() }
    assert_eq!(running.load(SeqCst), 64);
}

/// In its attempt it is nested: the test can tell.
#[retry(name = "around", nested = detect)]
async fn around() -> Result<u32, E> { Ok(attempts().await) }

fn main() {
    assert!(set_listener(|notice| HEARD.lock().unwrap().push(notice.operation.to_string())));
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let several = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    one.block_on(everything());
    several.block_on(everything());
    assert_eq!(starts_on(several.handle()), Ok(3), "on other threads");
    assert_eq!(*HEARD.lock().unwrap(), [""; 0]);
    assert_eq!(one.block_on(around()), Ok(1));
    assert_eq!(*HEARD.lock().unwrap(), ["told"]);
}
