//! Runs that are dropped at any moment: whatever they had taken, or had asked for, is nobody's afterwards (STORE D13).
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking

mod support;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{
    Actor, BulkOperations, DeadLetterSink, DeadLetterStore, Filter, ItemOutcome, LetterState, OperationRequest,
    OperationRunner, OperationStatus, Order, PageRequest, Payload, ReplayError, ReplayWorker, Replayer, Verb,
};
use support::{letter, wait};

fn ada() -> Actor {
    Actor::new("ada", "")
}

/// Polls a run so often, and drops it.
async fn drop_after(polls: usize, mut run: Pin<Box<dyn Future<Output = ()> + '_>>) {
    let mut polled = 0;
    poll_fn(|cx| {
        assert!(run.as_mut().poll(cx).is_pending(), "it ended");
        polled += 1;
        if polled == polls { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Once the writer has done what was asked before, nothing is leased, and nothing has counted.
async fn assert_nothing_is_held(store: &SqliteStore, what: &str) {
    for _ in 0..3 {
        store.reap(ada()).await.unwrap();
    }
    let mut replaying = Filter::all();
    replaying.states.push(LetterState::Replaying);
    assert_eq!(store.count(replaying).await.unwrap(), 0, "{what}");
    let page = PageRequest::first(Order::NewestFirst, 100);
    let rows = store.list(Filter::all(), page).await.unwrap().rows;
    assert!(rows.iter().all(|row| (row.replays, row.crashes) == (0, 0)), "{what}");
}

// D13: dropped exactly while its claim waits for the writer, while the answer waits for it, or at any other moment.
#[tokio::test]
async fn a_run_dropped_at_any_moment_holds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::options(directory.path().join("q.db")).reserve(false).open().unwrap());
    for job in ["a", "b", "c"] {
        // Some payloads are decoded on the other thread, after the claim.
        let mut letter = letter(job);
        if job != "a" {
            letter.payload = Payload::Json(format!("\"{}\"", job.repeat(200_000)));
        }
        assert!(wait(store.submit(letter)).is_kept());
    }
    // Never ends, and is polled again and again.
    let for_ever = |_| async {
        loop {
            tokio::task::yield_now().await;
        }
        #[allow(unreachable_code)]
        Ok::<(), ReplayError>(())
    };
    for polls in 1..16 {
        let replayer = Replayer::new(Arc::clone(&store)).execute().on("fetch", for_ever);
        let run = Box::pin(async { drop(replayer.run().await) });
        drop_after(polls, run).await;
        assert_nothing_is_held(&store, &format!("a replayer after {polls} polls")).await;

        let worker = ReplayWorker::new(Arc::clone(&store)).start_after(Duration::ZERO).concurrency(3);
        let worker = worker.letters_only().on("fetch", for_ever);
        let run = Box::pin(async { drop(worker.run().await) });
        drop_after(polls, run).await;
        assert_nothing_is_held(&store, &format!("a worker after {polls} polls")).await;

        let mut request = OperationRequest::new(Verb::Replay, Filter::all());
        request.options.concurrency = 3;
        let op_id = store.start(request, ada()).await.unwrap().id;
        let runner = OperationRunner::new(Arc::clone(&store)).on("fetch", for_ever);
        let run = Box::pin(async { drop(runner.run(op_id.clone()).await) });
        drop_after(polls, run).await;
        assert_nothing_is_held(&store, &format!("a runner after {polls} polls")).await;
        let left = store.operation(op_id).await.unwrap().unwrap();
        assert_eq!((left.status, left.runner), (OperationStatus::Pending, None), "after {polls} polls");
        assert_eq!(left.counts.get(ItemOutcome::Pending), 3, "after {polls} polls");
    }
}
