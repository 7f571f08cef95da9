// source: kind 2, 8; what: a lock taken in the tail expression, in a scrutinee or held by the failed result is free while the call waits, in both editions
// editions: 2021 2024
// level: core
#![deny(warnings)]
use retry_runtime::{retry, Classify};
use std::cell::Cell;

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
    #[allow(dead_code)]
    #[classify(permanent)]
    Denied,
}

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

struct Store { rows: Mutex<Vec<u32>> }
impl Store {
    fn check(rows: &[u32]) -> Result<u32, E> { rows.first().copied().ok_or(E::Busy) }
    #[retry(max_retries = 1, base_delay = "30s")]
    async fn tail(&self) -> Result<u32, E> { Self::check(&self.rows.lock().unwrap()) }
    #[retry(max_retries = 1, base_delay = "30s")]
    async fn scrutinee(&self) -> Result<u32, E> {
        match self.rows.lock().unwrap().first() { Some(v) => Ok(*v), None => Err(E::Busy) }
    }
    #[retry(max_retries = 1, base_delay = "30s")]
    async fn held(&self) -> Result<u32, Holds<'_>> {
        let guard = self.rows.lock().unwrap();
        match guard.first() { Some(v) => Ok(*v), None => Err(Holds::Guard(self.rows.try_lock().ok(), guard)) }
    }
}
#[derive(Classify)]
enum Holds<'a> {
    #[classify(retryable)]
    Guard(#[allow(dead_code)] Option<MutexGuard<'a, Vec<u32>>>, #[allow(dead_code)] MutexGuard<'a, Vec<u32>>),
}

async fn waits<F: std::future::Future>(store: &Store, call: F) {
    tokio::pin!(call);
    assert!(tokio::time::timeout(Duration::from_millis(5), &mut call).await.is_err());
    assert!(store.rows.try_lock().is_ok(), "the lock is held across the wait");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let store = Store { rows: Mutex::new(vec![]) };
    waits(&store, store.tail()).await;
    waits(&store, store.scrutinee()).await;
    waits(&store, store.held()).await;
    let _ = (Cell::new(0), E::Denied);
}
