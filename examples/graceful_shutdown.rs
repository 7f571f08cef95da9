//! Ctrl-C or SIGTERM: what is in flight is parked, and the program ends, in far less than a second.
//!
//! Forty jobs run, in the middle of an attempt or of a wait of a minute. One token, given to every call as
//! `cancel = token.cancelled()`, ends them all at once; each is in the database with the attempts made so far. Ten more know
//! of no token: their tasks are aborted, and each parks from its drop guard, without waiting; closing the store waits.
//!
//! `graceful_shutdown [--db PATH] [--wait]`: without `--wait` the program is its own operator, and stops once all jobs run.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use clap::Parser;
use dlq_sqlite::SqliteStore;
use retry_runtime::{Classify, Refused, StopReason, retry};
use tokio_util::sync::CancellationToken;

#[derive(Parser)]
struct Arguments {
    /// The database.
    #[arg(long, default_value = "graceful_shutdown.db")]
    db: PathBuf,
    /// Runs until a signal comes.
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, thiserror::Error, Classify)]
enum JobError {
    #[error("the server is busy")]
    #[classify(retryable)]
    Busy,
    #[error("{0}")]
    #[classify(transparent)]
    Stopped(#[from] Refused),
}

// Half of the jobs wait for their next attempt, the others are in the middle of one.
#[retry(max_retries = 9, base_delay = "1m", cancel = stop.cancelled(), dead_letter(sink = &dlq, job_id = job, payload = job))]
async fn run(dlq: SqliteStore, stop: CancellationToken, started: Arc<AtomicU32>, job: u32) -> Result<u32, JobError> {
    started.fetch_add(1, SeqCst);
    if job < 20 {
        return Err(JobError::Busy);
    }
    tokio::time::sleep(Duration::from_secs(3600)).await;
    Ok(job)
}

#[retry(dead_letter(sink = &dlq, job_id = job, payload = job))]
async fn run_unaware(dlq: SqliteStore, started: Arc<AtomicU32>, job: u32) -> Result<u32, JobError> {
    started.fetch_add(1, SeqCst);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    Ok(job)
}

/// Completes at Ctrl-C, or on Unix at SIGTERM, which is what service managers send. It listens from now on.
fn signal() -> std::io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        let _heard = tokio::signal::ctrl_c().await;
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let dlq = SqliteStore::open(&arguments.db)?;
    let stop = CancellationToken::new();
    let signal = signal()?;
    let started = Arc::new(AtomicU32::new(0));
    let start = |job| tokio::spawn(run(dlq.clone(), stop.clone(), Arc::clone(&started), job));
    let jobs: Vec<_> = (0..40).map(start).collect();
    let unaware = |job| tokio::spawn(run_unaware(dlq.clone(), Arc::clone(&started), job));
    let unaware: Vec<_> = (40..50).map(unaware).collect();
    while started.load(SeqCst) < 50 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    println!("running");
    if arguments.wait {
        signal.await;
    }
    let began = Instant::now();
    stop.cancel();
    let mut parked = 0;
    let count = jobs.len() + unaware.len();
    for job in jobs {
        match job.await? {
            // the call is over once its letter is durable
            Err(JobError::Stopped(refused)) if refused.reason() == StopReason::Cancelled => parked += 1,
            other => println!("a job ended otherwise: {other:?}"),
        }
    }
    for job in unaware {
        job.abort();
        // its future is dropped when the task has ended, not before
        parked += u32::from(job.await.is_err_and(|end| end.is_cancelled()));
    }
    // durable from here on
    dlq.close(Duration::from_secs(5));
    println!("stopped after {:?}", began.elapsed());
    println!("jobs={count} parked={parked} lost={}", retry_runtime::dead_letter::lost());
    Ok(())
}
