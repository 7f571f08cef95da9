// source: kind 11; what: generated code of budgets, breakers, classes, cancelling and nesting fires nothing of clippy all, pedantic, nursery and restriction
// editions: 2021 2024
// level: core
#![deny(warnings)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery)]
#![deny(
    clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::indexing_slicing, clippy::unwrap_in_result,
    clippy::panic_in_result_fn, clippy::let_underscore_must_use, clippy::let_underscore_untyped, clippy::arithmetic_side_effects,
    clippy::as_conversions, clippy::default_numeric_fallback, clippy::shadow_reuse, clippy::shadow_same, clippy::shadow_unrelated,
    clippy::same_name_method, clippy::single_char_lifetime_names, clippy::pattern_type_mismatch, clippy::ref_patterns,
    clippy::semicolon_inside_block, clippy::semicolon_outside_block, clippy::if_then_some_else_none, clippy::clone_on_ref_ptr,
    clippy::redundant_closure_call, clippy::blocks_in_conditions, clippy::async_yields_async, clippy::used_underscore_binding,
    clippy::used_underscore_items, clippy::no_effect_underscore_binding, clippy::large_futures, clippy::large_stack_frames,
    clippy::mem_forget, clippy::infinite_loop, clippy::absolute_paths, clippy::wildcard_enum_match_arm, clippy::match_wildcard_for_single_variants,
    clippy::unneeded_field_pattern, clippy::rest_pat_in_fully_bound_structs, clippy::multiple_unsafe_ops_per_block, clippy::min_ident_chars,
    clippy::std_instead_of_core, clippy::alloc_instead_of_core, clippy::else_if_without_else, clippy::exhaustive_enums, clippy::get_unwrap,
    clippy::integer_division, clippy::float_arithmetic, clippy::float_cmp_const, clippy::lossy_float_literal, clippy::map_err_ignore,
    clippy::mixed_read_write_in_expression, clippy::module_name_repetitions, clippy::print_stdout, clippy::print_stderr, clippy::self_named_module_files,
    clippy::str_to_string, clippy::string_add, clippy::try_err, clippy::unseparated_literal_suffix, clippy::verbose_file_reads,
    clippy::missing_assert_message, clippy::missing_asserts_for_indexing, clippy::needless_raw_strings, clippy::partial_pub_fields,
    clippy::deref_by_slicing, clippy::allow_attributes, clippy::allow_attributes_without_reason, clippy::renamed_function_params,
    clippy::undocumented_unsafe_blocks
)]
#![allow(clippy::redundant_pub_crate, clippy::exhaustive_structs, clippy::min_ident_chars, reason = "our own style below")]
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
