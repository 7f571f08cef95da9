//! A job that is dropped at any of its await points is parked exactly once, and says so (SEMANTICS 11.1, 11.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

#[path = "helpers/guarded.rs"]
mod guarded;

use std::future::pending;
use std::pin::pin;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use guarded::{E, Ending, Face, World, drop_after, paused, second_route, with_every_ending, work};
use retry_runtime::dead_letter::{DeadLetterStore, Filter, MemoryStore, PageRequest, Parking, Ticket};
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerKey};
use retry_runtime::observe::{self, Event};
use retry_runtime::reply::{Answer, Reply};
use retry_runtime::{DeadLetter, DeadLetterSink, RetryContext, StopReason, retry, retrying};
use tokio::task::yield_now;

macro_rules! faces {
    ($w:ident, $context:ident; $($name:ident($($options:tt)*);)*) => {
        $(
            #[retry(
                name = "job",
                max_retries = 3,
                dead_letter(sink = $w, job_id = 7, payload = vec![1, 2], model = "m"),
                $($options)*
            )]
            async fn $name($w: &World, $context: &mut RetryContext) -> Result<u32, E> {
                let _read = $context.attempts();
                work($w).await
            }
        )*
        const FACES: &[(&str, Face)] = &[
            $((stringify!($name), |w, context| Box::pin($name(w, context))),)*
            ("new_context", |w, _| Box::pin(new_context(w))),
            ("retrying", |w, _| Box::pin(inline(w))),
            ("journalled", |w, _| Box::pin(journalled(w))),
            ("journal_required", |w, context| Box::pin(journal_required(w, context))),
        ];
    };
}

faces! {
    w, context;
    plain();
    no_wait(base_delay = Duration::ZERO);
    in_context(context = context);
    second(fallback = second_route(w).await);
    counted(ledger(store = w, key = 7));
    skipping(ledger(store = w, key = 7, skipped = { yield_now().await; Ok(0) }));
    limited(attempt_timeout = "5s");
    cancellable(cancel = pending::<()>());
    cancelled(cancel = tokio::time::sleep(Duration::from_millis(2500)));
    on_a_budget(budget = &w.budget);
    behind_a_breaker(breaker = &w.breaker);
    everything(
        context = context, fallback = second_route(w).await, ledger(store = w, key = 7), attempt_timeout = "5s",
        deadline = "1h", cancel = pending::<()>(), budget = &w.budget, breaker = &w.breaker
    );
}

#[retry(name = "job", max_retries = 3, context = seen, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m"))]
async fn new_context(w: &World) -> Result<u32, E> {
    assert_eq!(seen.attempts(), w.runs.load(SeqCst) + 1);
    work(w).await
}

#[retry(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal))]
async fn journalled(w: &World) -> Result<u32, E> {
    work(w).await
}

#[retry(
    name = "job", max_retries = 3, context = context, fallback = second_route(w).await, ledger(store = w, key = 7),
    dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal = required), deadline = "1h"
)]
async fn journal_required(w: &World, context: &mut RetryContext) -> Result<u32, E> {
    work(w).await
}

async fn inline(w: &World) -> Result<u32, E> {
    retrying!(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m");
        async -> Result<u32, E> { work(w).await })
}

// 11.3, 11.1, D5, D20
#[test]
fn dropped_at_any_await_point_it_is_parked_once() {
    for (name, face) in FACES {
        with_every_ending(name, matches!(*name, "limited" | "cancelled" | "everything"), *face);
    }
}

// 11.1: what the ledger refuses is not owed, wherever it is dropped then; nobody knows that before it has answered
#[test]
fn a_refused_call_leaves_no_letter() {
    for (name, face) in FACES.iter().filter(|(name, _)| matches!(*name, "counted" | "skipping" | "everything")) {
        for polls in 1..4 {
            let (w, mut context) = (World::new(Ending::Returns(Ok(7)), Ok(8)), RetryContext::new());
            let key = LedgerKey::new("job", "7");
            let begun = w.ledger.begin(key.clone(), 3).wait(Duration::ZERO).ok().unwrap();
            let Ok(Begin::Go { token, .. }) = begun else { panic!("refused") };
            assert!(w.ledger.end(key, token, End::Ok).wait(Duration::ZERO).ok().unwrap().unwrap());
            let (end, _) = paused().block_on(drop_after(polls, &w, face(&w, &mut context)));
            let reasons: Vec<_> =
                w.letters.lock().unwrap().iter().map(|letter| (letter.reason, letter.attempts)).collect();
            let owed = if polls == 1 { vec![(StopReason::Dropped, 0)] } else { vec![] };
            assert_eq!(reasons, owed, "{name}, dropped at await point {polls}: {end:?}");
        }
    }
}

// 11.3: a future that was never polled was never accepted
#[test]
fn what_is_never_polled_is_never_parked() {
    for (name, face) in FACES {
        let (w, mut context) = (World::new(Ending::Returns(Ok(7)), Ok(8)), RetryContext::new());
        drop(face(&w, &mut context));
        assert_eq!((w.letters.lock().unwrap().len(), w.runs.load(SeqCst)), (0, 0), "{name}");
    }
}

#[retry(name = "hangs", dead_letter(sink = store, job_id = id))]
async fn hangs(store: Arc<MemoryStore>, id: &'static str) -> Result<u32, E> {
    pending().await
}

// 11.3: whoever drops it
#[test]
fn a_timeout_an_abort_a_select_and_the_end_of_the_runtime_park() {
    let store = Arc::new(MemoryStore::new());
    let runtime = paused();
    runtime.block_on(async {
        let limit = Duration::from_secs(5);
        assert!(tokio::time::timeout(limit, hangs(store.clone(), "timeout")).await.is_err());
        let task = tokio::spawn(hangs(store.clone(), "abort"));
        // never polled
        tokio::spawn(hangs(store.clone(), "never")).abort();
        yield_now().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        tokio::select! {
            _ = hangs(store.clone(), "select") => unreachable!("it hangs"),
            () = tokio::time::sleep(limit) => {}
        }
        let _running = tokio::spawn(hangs(store.clone(), "runtime"));
        yield_now().await;
    });
    drop(runtime);
    let rows = paused().block_on(store.list(Filter::default(), PageRequest::default())).unwrap().rows;
    let mut found: Vec<_> = rows.iter().map(|row| (row.job_id.as_str(), row.reason, row.attempts)).collect();
    found.sort_unstable_by_key(|row| row.0);
    let dropped = ["abort", "runtime", "select", "timeout"].map(|job| (job, StopReason::Dropped, 1));
    assert_eq!(found, dropped);
}

/// A refused call may take what the letter would have borrowed, and the future stays `Send` with whoever watches it.
#[retry(
    name = "whole",
    observer = observe::from_fn(|_: &Event<'_>| ()),
    ledger(store = store, key = 7, skipped = { drop(job); Ok(0) }),
    dead_letter(sink = store, job_id = job.len(), payload = job, model = "m", journal)
)]
async fn whole(store: Arc<MemoryStore>, job: String) -> Result<usize, E> {
    yield_now().await;
    Ok(job.len())
}

#[tokio::test]
async fn a_guarded_future_is_send_and_frees_what_a_refused_call_owes_nothing_for() {
    let store = Arc::new(MemoryStore::new());
    for wanted in [3, 0] {
        let task = tokio::spawn(whole(store.clone(), "job".to_owned()));
        assert_eq!(task.await.unwrap().ok(), Some(wanted));
    }
}

/// Answers nobody.
#[derive(Default)]
struct Silent(Mutex<Vec<Answer<Parking>>>);

impl DeadLetterSink for Silent {
    fn submit(&self, _: DeadLetter) -> Ticket {
        let (answer, ticket) = Reply::pair(|| Parking::Replaying);
        self.0.lock().unwrap().push(answer);
        ticket
    }
}

// 11.3: the guard hands the letter over, and waits for nobody
#[test]
fn a_drop_does_not_wait_for_the_sink() {
    #[retry(dead_letter(sink = sink))]
    async fn hangs(sink: &Silent) -> Result<u32, E> {
        pending().await
    }
    let (ended, end) = channel();
    std::thread::spawn(move || {
        let sink = Silent::default();
        {
            let mut call = pin!(hangs(&sink));
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        ended.send(sink.0.lock().unwrap().len()).unwrap();
    });
    assert_eq!(end.recv_timeout(Duration::from_secs(30)), Ok(1));
}
