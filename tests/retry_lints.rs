#![deny(warnings)]
#![deny(
    absolute_paths_not_starting_with_crate,
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    future_incompatible,
    impl_trait_redundant_captures,
    keyword_idents_2024,
    let_underscore_drop,
    macro_use_extern_crate,
    meta_variable_misuse,
    missing_abi,
    missing_copy_implementations,
    missing_debug_implementations,
    missing_docs,
    redundant_imports,
    redundant_lifetimes,
    rust_2018_idioms,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    unnameable_types,
    unreachable_pub,
    unsafe_code,
    unused_extern_crates,
    unused_import_braces,
    unused_lifetimes,
    unused_macro_rules,
    unused_qualifications,
    unused_results,
    variant_size_differences,
    let_underscore,
    if_let_rescope,
    tail_expr_drop_order
)]
#![deny(
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::shadow_reuse,
    clippy::shadow_unrelated,
    clippy::pattern_type_mismatch
)]
//! Every option of both macros under lints that are off by default: generated code raises none. Clippy sees the same file in CI.

use core::time::Duration;
use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::observe::{Event, Observer};
use retry_runtime::{Classify, Elapsed, GaveUp, Policy, RetryContext, Verdict, retry, retrying};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::runtime::Builder;
use tokio::task::yield_now;
use tokio::time::sleep;

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Classify)]
#[non_exhaustive]
pub enum Error {
    /// Busy.
    #[classify(retryable)]
    Busy,
    /// Denied.
    #[classify(permanent)]
    Denied,
    /// Slow.
    #[classify(retryable, class = "timeout")]
    Slow,
}
impl From<Elapsed> for Error {
    fn from(_elapsed: Elapsed) -> Self {
        Self::Slow
    }
}
static POLICY: Policy = Policy::new().max_retries(1).base_delay(Duration::from_millis(1));
const fn by_hand(error: &Error) -> Verdict {
    match *error {
        Error::Busy | Error::Slow => Verdict::retryable("busy"),
        Error::Denied => Verdict::permanent("denied"),
    }
}
async fn nap(wait: Duration) {
    sleep(wait).await;
}
const fn growth(retry: u32) -> Duration {
    Duration::new(0, retry)
}

/// A client.
#[derive(Debug)]
pub struct Client {
    store: Arc<MemoryStore>,
    watch: Arc<Watch>,
    calls: u32,
}
impl Client {
    /// Calls.
    ///
    /// # Errors
    /// When busy.
    #[retry(
        max_retries = 1,
        base_delay = "1ms",
        max_delay = "2ms",
        backoff = exponential(1.5),
        jitter = full,
        max_retry_after = "1s",
        deadline = "1m",
        attempt_timeout = "10s",
        retry_on(Error::Denied),
        stop_on(Error::Slow),
        unknown = retry,
        name = "client.call",
        fallback = self.second(&error).await,
        dead_letter(sink = Arc::clone(&self.store), job_id = job, payload = job, model = "m"),
        ledger(store = Arc::clone(&self.store), key = job, scope = "s", max_attempts = 5, skipped = Ok(0)),
        context = ctx,
        sleep = nap
    )]
    pub async fn call(&mut self, job: &str, ctx: &mut RetryContext) -> Result<u32, Error> {
        yield_now().await;
        self.calls = self.calls.saturating_add(1);
        if job.is_empty() { Err(Error::Busy) } else { Ok(ctx.attempts()) }
    }

    async fn second(&self, error: &Error) -> Result<u32, Error> {
        yield_now().await;
        if *error == Error::Busy { Ok(self.calls) } else { Err(Error::Denied) }
    }

    /// Calls and blocks.
    ///
    /// # Errors
    /// When busy.
    #[retry(
        policy = &POLICY,
        retry_on(Error::Busy if self.calls > 0),
        retry_ok(0),
        classify = by_hand,
        name = "client.blocking",
        fallback = Ok(7),
        dead_letter(sink = &self.store, job_id = job, payload = job),
        ledger(store = &self.store, key = job, skipped = Ok(1)),
        context = seen
    )]
    pub fn blocking(&self, job: &str) -> Result<u32, Error> {
        if job.is_empty() { Err(Error::Busy) } else { Ok(seen.attempts()) }
    }

    /// Reports.
    ///
    /// # Errors
    /// Always.
    #[retry(max_retries = retries, base_delay = Duration::from_millis(1), backoff = growth, clone(text), share(log))]
    pub async fn report(
        &self,
        retries: u32,
        mut text: String,
        mut log: Vec<usize>,
        mut count: u32,
    ) -> Result<u32, GaveUp<Error>> {
        yield_now().await;
        text.push('x');
        log.push(text.len());
        count = count.saturating_add(1);
        if log.len() > 9 { Ok(count) } else { Err(Error::Busy) }
    }

    /// Is watched.
    ///
    /// # Errors
    /// Always.
    #[retry(base_delay = "1ms", observer = (&self.watch, Arc::clone(&self.watch)))]
    pub async fn watched(&self) -> Result<u32, Error> {
        yield_now().await;
        Err(Error::Busy)
    }

    /// Is watched, and parked.
    ///
    /// # Errors
    /// Always.
    #[retry(name = "client.watched", observer = &self.watch, dead_letter(sink = &self.store, job_id = job))]
    pub fn watched_blocking(&self, job: &str) -> Result<u32, Error> {
        if job.is_empty() { Ok(0) } else { Err(Error::Denied) }
    }
}

/// Counts events.
#[derive(Debug, Default)]
pub struct Watch(AtomicU32);

impl Observer for Watch {
    fn on(&self, event: &Event<'_>) {
        let _before = self.0.fetch_add(event.attempt.min(1), Ordering::Relaxed);
    }
}

fn inline(retries: u32) -> Result<u32, Error> {
    let mut calls = 0_u32;
    let value = retrying!(max_retries = retries, base_delay = "1ms"; -> Result<u32, Error> {
        calls = calls.saturating_add(1);
        if calls < 2 { Err(Error::Busy) } else { Ok(calls) }
    })?;
    Ok(value)
}

async fn run() -> bool {
    let mut client = Client { store: Arc::new(MemoryStore::new()), watch: Arc::default(), calls: 0 };
    let mut ctx = RetryContext::new();
    let called = client.call("", &mut ctx).await == Ok(2);
    let blocked = client.blocking("") == Ok(7);
    let reported = client.report(2, String::new(), Vec::new(), 0).await.is_err_and(|report| report.attempts() == 3);
    let inlined = retrying!(base_delay = "1ms"; async -> Result<bool, Error> { Ok(inline(2) == Ok(2)) });
    let watched = client.watched().await == Err(Error::Busy) && client.watched_blocking("a") == Err(Error::Denied);
    let told = client.watch.0.load(Ordering::Relaxed) == 2 * 9 + 4;
    called && blocked && reported && watched && told && inlined == Ok(true)
}

// kind 11: lints
#[test]
fn everything_runs_too() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    assert!(runtime.block_on(run()));
}
