// source: kind 11; what: generated code of every option fires nothing of clippy all, pedantic, nursery and restriction
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

use core::time::Duration;
use std::process::exit;
use std::sync::Arc;
use tokio::runtime::Builder;
use tokio::task::yield_now;
use tokio::time::sleep;
use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::{Classify, Elapsed, GaveUp, Policy, RetryContext, Verdict, retry, retrying};

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

    /// Eats.
    ///
    /// # Errors
    /// When busy.
    #[retry(base_delay = "1ms", clone(text))]
    pub fn eat(&self, text: String) -> Result<usize, Error> {
        self.calls.checked_add(1).map_or(Err(Error::Busy), |_| Ok(Box::<str>::from(text).len()))
    }

    /// Reports.
    ///
    /// # Errors
    /// Always.
    #[retry(max_retries = retries, base_delay = Duration::from_millis(1), backoff = growth, clone(text), share(log))]
    pub async fn report(&self, retries: u32, mut text: String, mut log: Vec<usize>, mut count: u32) -> Result<u32, GaveUp<Error>> {
        yield_now().await;
        text.push('x');
        log.push(text.len());
        count = count.saturating_add(1);
        if log.len() > 9 { Ok(count) } else { Err(Error::Busy) }
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
    let mut client = Client { store: Arc::new(MemoryStore::new()), calls: 0 };
    let mut ctx = RetryContext::new();
    let called = client.call("", &mut ctx).await == Ok(2);
    let blocked = client.blocking("") == Ok(7);
    let reported = client.report(2, String::new(), Vec::new(), 0).await.is_err_and(|report| report.attempts() == 3);
    let inlined = retrying!(base_delay = "1ms"; async -> Result<bool, Error> { Ok(inline(2) == Ok(2)) });
    client.eat(String::new()) == Ok(0) && called && blocked && reported && inlined == Ok(true)
}

fn main() {
    let Ok(runtime) = Builder::new_current_thread().enable_time().build() else {
        exit(1);
    };
    exit(i32::from(!runtime.block_on(run())));
}
