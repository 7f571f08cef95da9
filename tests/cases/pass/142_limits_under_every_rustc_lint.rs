// source: kind 11; what: generated code of budgets, breakers, classes, cancelling and nesting fires none of the allow-by-default lints of rustc
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![deny(
    absolute_paths_not_starting_with_crate, elided_lifetimes_in_paths, explicit_outlives_requirements, future_incompatible,
    impl_trait_redundant_captures, keyword_idents_2024, let_underscore_drop, macro_use_extern_crate, meta_variable_misuse, missing_abi,
    missing_copy_implementations, missing_debug_implementations, missing_docs, redundant_imports, redundant_lifetimes, rust_2018_idioms,
    single_use_lifetimes, trivial_casts, trivial_numeric_casts, unit_bindings, unnameable_types, unreachable_pub, unsafe_code,
    unused_extern_crates, unused_import_braces, unused_lifetimes, unused_macro_rules, unused_qualifications, unused_results,
    variant_size_differences, let_underscore, if_let_rescope, tail_expr_drop_order
)]
#![allow(unused_crate_dependencies)]
//! Docs.

use core::future::pending;
use std::process::exit;
use std::sync::Arc;
use tokio::runtime::Builder;
use tokio::task::yield_now;
use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::{Budget, Budgets, CircuitBreaker, Classify, Elapsed, GaveUp, Refused, Verdict, retry, retrying};

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Classify)]
#[non_exhaustive]
pub enum Error {
    /// Busy.
    #[classify(retryable)]
    Busy,
    /// Lost.
    #[classify(retryable, outcome_unknown)]
    Lost,
    /// Stopped.
    #[classify(permanent)]
    Stopped,
}
impl From<Elapsed> for Error {
    fn from(_elapsed: Elapsed) -> Self {
        Self::Stopped
    }
}
impl From<Refused> for Error {
    fn from(_refused: Refused) -> Self {
        Self::Stopped
    }
}

static BUDGET: Budget = Budget::new();
static BREAKER: CircuitBreaker = CircuitBreaker::new();
static HOSTS: Budgets<String> = Budgets::new(Budget::new);

const fn by_hand(_error: &Error) -> Verdict {
    Verdict::retryable("busy")
}

/// A client.
#[derive(Debug)]
pub struct Client {
    store: Arc<MemoryStore>,
    budget: Arc<Budget>,
    breaker: Arc<CircuitBreaker>,
    calls: u32,
}
impl Client {
    /// Calls.
    ///
    /// # Errors
    /// When busy.
    #[retry(
        base_delay = "1ms",
        class(busy, max_retries = 3, jitter = full),
        class("lost", max_retries = most),
        idempotent = false,
        nested = outer_only,
        budget = Arc::clone(&self.budget),
        breaker = Arc::clone(&self.breaker),
        cancel = pending::<()>(),
        attempt_timeout = "10s",
        name = "client.call",
        fallback = self.second(&error).await,
        dead_letter(sink = Arc::clone(&self.store), job_id = job, payload = job)
    )]
    pub async fn call(&mut self, job: &str, most: u32) -> Result<u32, Error> {
        yield_now().await;
        self.calls = self.calls.saturating_add(1);
        if job.is_empty() { Err(Error::Busy) } else { Ok(7) }
    }

    async fn second(&self, error: &Error) -> Result<u32, Error> {
        yield_now().await;
        if *error == Error::Busy { Ok(self.calls) } else { Err(Error::Lost) }
    }

    /// Calls and blocks.
    ///
    /// # Errors
    /// When busy.
    #[retry(
        max_retries = forever,
        base_delay = "1ms",
        class(busy, max_retries = 1),
        classify = by_hand,
        idempotent = true,
        nested = detect,
        budget = HOSTS.get(job),
        breaker = &BREAKER,
        name = "client.blocking",
        dead_letter(sink = &self.store, job_id = job, payload = job)
    )]
    pub fn blocking(&self, job: &str) -> Result<u32, GaveUp<Error>> {
        if job.is_empty() { Err(Error::Busy) } else { Ok(self.calls) }
    }

    /// Reads.
    ///
    /// # Errors
    /// When busy.
    #[retry(base_delay = "1ms", nested = detect, budget = &BUDGET)]
    pub async fn plain(&self) -> Result<u32, Error> {
        yield_now().await;
        if self.calls > 99 { Err(Error::Busy) } else { Ok(self.calls) }
    }
}

fn inline() -> Result<u32, Error> {
    let mut calls = 0_u32;
    let value = retrying!(base_delay = "1ms", nested = outer_only, class(busy, max_retries = 1), budget = &BUDGET, breaker = &BREAKER; -> Result<u32, Error> {
        calls = calls.saturating_add(1);
        if calls < 2 { Err(Error::Busy) } else { Ok(calls) }
    })?;
    Ok(value)
}

async fn run() -> bool {
    let mut client = Client { store: Arc::new(MemoryStore::new()), budget: Arc::default(), breaker: Arc::default(), calls: 0 };
    let called = client.call("", 2).await == Ok(4);
    let blocked = client.blocking("").is_err_and(|report| report.attempts() == 2);
    let inlined = retrying!(base_delay = "1ms", nested = detect, cancel = pending::<()>(), breaker = &BREAKER; async -> Result<bool, Error> {
        Ok(inline() == Err(Error::Busy))
    });
    called && blocked && inlined == Ok(true) && inline() == Ok(2) && client.plain().await == Ok(4)
}

fn main() {
    let Ok(runtime) = Builder::new_current_thread().enable_time().build() else {
        exit(1);
    };
    exit(i32::from(!runtime.block_on(run())));
}
