//! The future of a retried function is at most 16 bytes larger than a hand-written loop's with its attempt in an async block:
//! for literal settings or `policy = &STATIC`, and no option that needs state. It is `Send` where the plain one is.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use retry_runtime::{Classify, GaveUp, Jitter, Policy, retry};

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
    #[allow(dead_code)]
    #[classify(permanent)]
    Denied,
}

static POLICY: Policy = Policy::new().jitter(Jitter::Full);

async fn work(calls: &AtomicU32) -> Result<u32, E> {
    tokio::task::yield_now().await;
    if calls.fetch_add(1, SeqCst) < 2 { Err(E::Busy) } else { Ok(3) }
}

/// The yardstick.
async fn hand(calls: &AtomicU32) -> Result<u32, E> {
    let mut retries = 0_u32;
    loop {
        let wait = {
            let out: Result<u32, E> = async { work(calls).await }.await;
            match out {
                Ok(value) => return Ok(value),
                Err(E::Denied) => return Err(E::Denied),
                Err(E::Busy) if retries == 2 => return Err(E::Busy),
                Err(E::Busy) => {}
            }
            let wait = Duration::from_secs(1) * 2_u32.pow(retries);
            retries += 1;
            wait
        };
        tokio::time::sleep(wait).await;
    }
}

#[retry]
async fn default(calls: &AtomicU32) -> Result<u32, E> {
    work(calls).await
}

#[retry(max_retries = 5, base_delay = "2s", max_delay = "31s", backoff = exponential(1.5), jitter = "1s", max_retry_after = "1m")]
async fn literal(calls: &AtomicU32) -> Result<u32, E> {
    work(calls).await
}

#[retry(jitter = decorrelated, retry_on(E::Denied), stop_on(E::Busy if false), unknown = retry, retry_ok(0), name = "n")]
async fn words(calls: &AtomicU32) -> Result<u32, E> {
    work(calls).await
}

#[retry(policy = &POLICY)]
async fn by_policy(calls: &AtomicU32) -> Result<u32, E> {
    work(calls).await
}

// A of the figures: hand + 16
#[tokio::test(start_paused = true)]
async fn at_most_16_bytes_over_the_hand_written_loop() {
    let calls = AtomicU32::new(0);
    let yardstick = size_of_val(&hand(&calls));
    for (name, size) in [
        ("default", size_of_val(&default(&calls))),
        ("literal", size_of_val(&literal(&calls))),
        ("words", size_of_val(&words(&calls))),
        ("by_policy", size_of_val(&by_policy(&calls))),
    ] {
        assert!(size <= yardstick + 16, "{name}: {size} bytes, the hand-written loop has {yardstick}");
    }
    for result in [hand(&calls).await, default(&calls).await, literal(&calls).await, words(&calls).await] {
        assert_eq!(result, Ok(3));
    }
}

fn send<T: Send>(value: T) -> T {
    value
}

/// `Send`, not `Sync`.
struct Connection {
    calls: Cell<u32>,
}

impl Connection {
    #[retry(max_retries = 3)]
    async fn read(&mut self) -> Result<u32, E> {
        self.calls.set(self.calls.get() + 1);
        tokio::task::yield_now().await;
        if self.calls.get() < 3 { Err(E::Busy) } else { Ok(self.calls.get()) }
    }
}

/// An error that may not leave its thread.
#[derive(Classify)]
#[classify(retryable)]
struct Local(#[allow(dead_code)] std::rc::Rc<u32>);

#[retry(deadline = "1m", attempt_timeout = "5s")]
async fn local(calls: &AtomicU32) -> Result<u32, GaveUp<Local>> {
    tokio::task::yield_now().await;
    if calls.fetch_add(1, SeqCst) < 2 { Err(Local(std::rc::Rc::new(1))) } else { Ok(3) }
}

#[retry]
async fn generic<T: Send + Sync, F: Fn(&T) -> Result<u32, E> + Send + Sync>(value: T, op: F) -> Result<u32, E> {
    tokio::task::yield_now().await;
    op(&value)
}

#[tokio::test(start_paused = true)]
async fn futures_are_send_where_the_plain_ones_are() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let mut connection = Connection { calls: Cell::new(0) };
    assert_eq!(send(connection.read()).await, Ok(3));
    assert!(tokio::spawn(async { local(&CALLS).await.is_ok() }).await.unwrap());
    assert_eq!(tokio::spawn(generic(3, |value| Ok(*value))).await.unwrap(), Ok(3));
}
