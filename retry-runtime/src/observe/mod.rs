//! Watching: what calls do, as [`Event`]s for an [`Observer`], and what the runtime says aloud, as [`Notice`]s.
//!
//! # Events
//!
//! An observer is told what a call does, while it does it: by `observer = EXPR` in the attribute and in `retrying!`, by
//! [`Retry::observer`](crate::Retry::observer), and, for all calls of the process, by [`install`]. Without any of them a
//! call that succeeds at once takes no time and allocates nothing; it asks for the installed one by one relaxed load.
//!
//! ```
//! use std::sync::Mutex;
//! use retry_runtime::observe::{Event, Observer};
//! use retry_runtime::{Classify, retry};
//!
//! #[derive(Debug, Classify)]
//! #[classify(retryable, class = "timeout")]
//! struct Slow;
//!
//! #[derive(Default)]
//! struct Lines(Mutex<Vec<String>>);
//!
//! impl Observer for Lines {
//!     fn on(&self, event: &Event<'_>) {
//!         self.0.lock().unwrap().push(event.to_string());
//!     }
//! }
//!
//! #[retry(name = "fetch", max_retries = 1, base_delay = "2ms", observer = lines)]
//! fn fetch(lines: &Lines) -> Result<(), Slow> {
//!     Err(Slow)
//! }
//!
//! let lines = Lines::default();
//! let _slow = fetch(&lines);
//! let said = lines.0.into_inner().unwrap();
//! assert_eq!(said[2], "fetch: attempt 1 of 2 failed (timeout), retrying in 2ms");
//! assert!(said[5].starts_with("fetch: gave up after 2 of 2 attempts in ") && said[5].ends_with(" (exhausted): timeout"));
//! ```
//!
//! | event | when | besides |
//! |---|---|---|
//! | `attempt_started` | the body is about to run | |
//! | `attempt_failed` | it returned an error, a value that `retry_ok` rejects, or ran out of time | `took` |
//! | `retry_scheduled` | another attempt comes, after a wait | `delay_ms` |
//! | `refused` | an attempt was not made: budget, breaker, deadline, cancelled, ledger | `reason` |
//! | `succeeded` | the first attempt succeeded | |
//! | `recovered` | a later one did | |
//! | `fallback` | the second route ended: well, or with its own `class` | `reason` of the first route, `succeeded` |
//! | `gave_up` | the call failed | `reason`, `unfinished` |
//! | `parked` | its letter is in the store | `reason`, `job_id`, `letter_id` |
//! | `spilled` | the store failed, and the letter is in the spill file | `reason`, `job_id`, the file and the error |
//! | `park_failed` | the letter is nowhere | `reason`, `job_id`, the error |
//!
//! Every event carries `operation`, `attempt` (how many were made so far, the running one included), `max_attempts`, `class`
//! and `code` of the last failed attempt, and `elapsed_ms`. Nothing in an event comes out of the arguments or the error's
//! text, but for `job_id`.
//!
//! Every call ends with exactly one of `succeeded`, `recovered`, `fallback` that succeeded, `gave_up`, or `refused` with the
//! reason `ledger_refused`; then comes what became of its letter, where it leaves one. A call inside a replay of its own job
//! parks nothing, and says nothing of a letter. A future that is dropped in the middle gives up as `dropped`.
//!
//! An observer is called on the call's own thread, between its attempts: what takes long there makes the call wait. A panic
//! in it is caught and counted ([`observer_panics`]), said aloud once for each observer, and changes nothing else.
//!
//! `TracingObserver` (feature `tracing`) makes spans and log lines of events, `MetricsObserver` (feature `metrics`) counters;
//! each says in its own docs what they are called. `dashboards/` in the repository has a Grafana dashboard and alerts.
//!
//! # Notices
//!
//! What an operator should know, whoever watches: one process-wide listener takes it ([`set_listener`]), with the feature
//! `tracing` also the subscriber; where neither is there, it is a line on stderr. Nothing is said on the way of a first-try
//! success.

mod event;
mod notice;
mod observer;
mod once;
mod span;
#[cfg(feature = "metrics")]
mod to_metrics;
#[cfg(feature = "tracing")]
mod to_tracing;

pub use event::{Event, What};
pub use notice::{Level, Notice, set_listener};
pub use observer::{FromFn, Observer, from_fn, observer_panics};
pub(crate) use observer::{installed, keep, tell};
pub(crate) use once::{BuiltAt, is_first, warn_once, with_place};
pub(crate) use span::CallSpan;
#[cfg(feature = "metrics")]
pub use to_metrics::MetricsObserver;
#[cfg(feature = "tracing")]
pub use to_tracing::TracingObserver;

// what an installed observer needs is known there, and linked into programs that install one
pub use crate::__private::install;
