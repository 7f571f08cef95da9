// source: kind 6, 9; what: sinks by reference, handle, Arc and dyn; payloads, ids and keys from arguments; a call refused by the ledger
// editions: 2021 2024
// level: hard
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

use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink, MemoryStore, Parking, Ticket};
use retry_runtime::ledger::AttemptLedger;
use retry_runtime::reply::Reply;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::Arc;

#[derive(Default)]
struct Counting(AtomicU32);
impl DeadLetterSink for Counting {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        assert_eq!(letter.attempts, 2);
        self.0.fetch_add(1, SeqCst);
        Reply::ready(Parking::Parked { letter_id: letter.park_id.to_string() })
    }
}
struct Job { id: u64, body: String }
#[retry(max_retries = 1, base_delay = "1ms", dead_letter(sink = sink, job_id = job.id, payload = &job.body))]
async fn a(sink: &Counting, job: &Job) -> Result<u32, E> { let _ = job; Err(E::Busy) }
#[retry(max_retries = 1, base_delay = "1ms", dead_letter(sink = sink, job_id = format_args!("{}-{}", job.id, 1).to_string(), payload = job.body.clone()))]
fn b(sink: Arc<dyn DeadLetterSink>, mut job: &mut Job) -> Result<u32, E> { job.id += 1; job = Box::leak(Box::new(Job { id: 1, body: String::new() })); job.body.push('x'); Err(E::Busy) }
#[retry(max_retries = 1, base_delay = "1ms", dead_letter(sink = sink.clone(), job_id = id, model = "m"))]
async fn c<S: DeadLetterSink + Clone, I: std::fmt::Display>(sink: &S, id: I) -> Result<u32, E> { Err(E::Busy) }
struct Client { sink: Arc<Counting>, calls: u32 }
impl Client {
    #[retry(max_retries = 1, base_delay = "1ms", name = "client.d", dead_letter(sink = self.sink.clone(), job_id = key))]
    async fn d(&mut self, key: &str) -> Result<u32, E> { self.calls += 1; Err(E::Busy) }
    #[retry(max_retries = 1, base_delay = "1ms", name = "client.e", dead_letter(sink = &self.sink, job_id = key))]
    fn e(&self, key: &str) -> Result<u32, E> { Err(E::Busy) }
}
#[retry(max_retries = 1, base_delay = "1ms", ledger(store = store, key = key, max_attempts = 2, skipped = Ok(None)), dead_letter(sink = sink))]
async fn f<L: AttemptLedger>(store: &L, sink: &Counting, key: &str) -> Result<Option<u32>, E> { Err(E::Busy) }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let sink = Arc::new(Counting::default());
    let mut job = Job { id: 1, body: "b".into() };
    assert_eq!(a(&sink, &job).await, Err(E::Busy));
    assert_eq!(b(sink.clone(), &mut job), Err(E::Busy));
    assert_eq!(job.id, 3);
    assert_eq!(c(&sink, 7).await, Err(E::Busy));
    let mut client = Client { sink: sink.clone(), calls: 0 };
    assert_eq!((client.d("k").await, client.e("k"), client.calls), (Err(E::Busy), Err(E::Busy), 2));
    assert_eq!(sink.0.load(SeqCst), 5);
    let store = MemoryStore::new();
    assert_eq!(f(&store, &sink, "k").await, Err(E::Busy));
    assert_eq!(f(&store, &sink, "k").await, Err(E::Busy));
    assert_eq!(f(&store, &sink, "k").await, Ok(None));
    assert_eq!(sink.0.load(SeqCst), 7);
    let _ = Cell::new(0);
}
