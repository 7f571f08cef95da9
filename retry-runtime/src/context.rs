//! What happened in one call, readable during and after it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::attempt::{AttemptRecord, message_within};
use crate::clock;
use crate::engine::{Knob, Stop};
use crate::stop::StopReason;
use crate::verdict::{Disposition, Verdict};

/// How many records are kept from each end of a long history.
const KEPT: usize = 8;

/// The record of one call: attempts, classes, times, reason.
///
/// Pass one in with `context = name` as an argument `name: &mut RetryContext`, or let the attribute make it. It is cleared
/// when the call starts, written between attempts, and complete when the call ends, also when it succeeds.
///
/// ```
/// use retry_runtime::RetryContext;
///
/// let context = RetryContext::new();
/// assert_eq!(context.retry_count(), 0);
/// assert_eq!(context.last_error_class(), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct RetryContext {
    attempts: u32,
    started: Option<(Instant, SystemTime)>,
    attempt_started: Option<(Instant, SystemTime)>,
    elapsed: Option<Duration>,
    /// The first 8 and the last 8.
    history: Vec<AttemptRecord>,
    omitted: u32,
    /// Of the last failure, whose record is the last of the history.
    disposition: Option<Disposition>,
    stop: Option<Stop>,
    /// What the ledger or the journal said when it refused the call.
    detail: Option<Box<str>>,
}

/// The last failure, as a letter shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last<'a> {
    pub(crate) disposition: Disposition,
    pub(crate) record: &'a AttemptRecord,
}

impl RetryContext {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many attempts were made after the first: 0 after a first-try success.
    pub fn retry_count(&self) -> u32 {
        self.attempts.saturating_sub(1)
    }

    /// How many times the body ran, the running attempt included.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The class of the last failed attempt; `None` when none failed.
    pub fn last_error_class(&self) -> Option<&str> {
        self.history.last().map(|last| &*last.class)
    }

    /// The failed attempts, oldest first: the first 8 and the last 8 of a long history.
    pub fn history(&self) -> &[AttemptRecord] {
        &self.history
    }

    /// How many records the history leaves out in its middle.
    pub const fn omitted(&self) -> u32 {
        self.omitted
    }

    /// Why the call ended; `None` while it runs.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop.map(|stop| stop.reason)
    }

    /// The time since the first attempt's start, or the whole call's when it has ended.
    pub fn elapsed(&self) -> Duration {
        self.elapsed.unwrap_or_else(|| self.since_start(clock::monotonic()))
    }

    /// One line per failed attempt, oldest first, bounded as the history is.
    pub fn error_summary(&self) -> Vec<String> {
        self.history
            .iter()
            .map(|record| match record.code {
                Some(code) => {
                    format!("attempt {}: {} ({code}): {}", record.attempt, record.class, record.message)
                }
                None => format!("attempt {}: {}: {}", record.attempt, record.class, record.message),
            })
            .collect()
    }

    /// The three keys `retry_count`, `last_error_class` (null when nothing failed) and `error_summary`.
    pub fn to_map(&self) -> BTreeMap<String, Value> {
        BTreeMap::from([
            ("retry_count".to_owned(), self.retry_count().into()),
            ("last_error_class".to_owned(), self.last_error_class().into()),
            ("error_summary".to_owned(), self.error_summary().into()),
        ])
    }

    /// What generated code says, whether the name given is the context or a reference to it.
    #[doc(hidden)]
    pub const fn __retry_mut(&mut self) -> &mut Self {
        self
    }

    #[doc(hidden)]
    pub const fn __retry_ref(&self) -> &Self {
        self
    }

    fn since_start(&self, now: Instant) -> Duration {
        self.started.map_or(Duration::ZERO, |(start, _)| now.saturating_duration_since(start))
    }

    // What follows is written by the engine's faces only.

    pub(crate) fn begin(&mut self) {
        *self = Self { started: Some((clock::monotonic(), clock::wall())), ..Self::default() };
    }

    pub(crate) fn begin_attempt(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
        self.attempt_started = match (self.attempts, self.started) {
            (1, Some(start)) => Some(start),
            _ => Some((clock::monotonic(), clock::wall())),
        };
    }

    pub(crate) fn failed(&mut self, verdict: &Verdict, message: Cow<'_, str>) {
        let (at, took) = self.attempt_started.map_or((clock::wall(), Duration::ZERO), |(start, at)| {
            (at, clock::monotonic().saturating_duration_since(start))
        });
        let (class, message) = (Cow::Borrowed(verdict.class), message_within(message));
        let record = AttemptRecord { attempt: self.attempts, at, took, class, code: verdict.code, message, wait: None };
        self.disposition = Some(verdict.disposition);
        if self.history.len() == 2 * KEPT {
            self.history.remove(KEPT);
            self.omitted = self.omitted.saturating_add(1);
        }
        self.history.push(record);
    }

    pub(crate) fn waiting(&mut self, wait: Duration) {
        if let Some(record) = self.history.last_mut() {
            record.wait = Some(wait);
        }
    }

    pub(crate) fn stopped(&mut self, stop: Stop) {
        self.stop = Some(stop);
        self.elapsed = Some(self.since_start(clock::monotonic()));
    }

    /// Becomes equal to another record of the same call; a history that has not grown is not copied again.
    pub(crate) fn mirror(&mut self, other: &Self) {
        self.attempts = other.attempts;
        self.started = other.started;
        self.attempt_started = other.attempt_started;
        self.elapsed = other.elapsed;
        self.stop = other.stop;
        self.detail.clone_from(&other.detail);
        let state = |record: &Self| {
            let wait = record.history.last().map(|last| (last.attempt, last.wait));
            (record.history.len(), record.omitted, wait)
        };
        if state(self) != state(other) {
            self.history.clone_from(&other.history);
            self.omitted = other.omitted;
            self.disposition = other.disposition;
        }
    }

    pub(crate) fn refused_for(&mut self, detail: &str) {
        self.detail = Some(detail.into());
    }

    pub(crate) fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    pub(crate) const fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// The earliest time for the next try, where a server asked for more than the call would wait. A second route that failed
    /// since then changes nothing about it.
    pub(crate) fn not_before(&self, now: SystemTime) -> Option<SystemTime> {
        match self.stop?.knob {
            Knob::Hint { hint, .. } => Some(clock::after(now, hint)),
            _ => None,
        }
    }

    pub(crate) fn last(&self) -> Option<Last<'_>> {
        Some(Last { disposition: self.disposition?, record: self.history.last()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 6.1
    #[test]
    fn a_long_history_keeps_both_ends_and_says_what_it_left_out() {
        let mut context = RetryContext::new();
        context.begin();
        for _ in 0..40 {
            context.begin_attempt();
            context.failed(&Verdict::retryable("timeout"), "slow".into());
        }
        let numbers: Vec<u32> = context.history().iter().map(|record| record.attempt).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 33, 34, 35, 36, 37, 38, 39, 40]);
        assert_eq!((context.omitted(), context.attempts(), context.retry_count()), (24, 40, 39));
    }

    // 6.1
    #[test]
    fn a_long_message_is_cut_wherever_it_is_kept() {
        let mut context = RetryContext::new();
        context.begin();
        context.begin_attempt();
        context.failed(&Verdict::retryable("timeout"), "slow".repeat(1000).into());
        let messages: Vec<_> = context.history().iter().map(|record| &record.message).collect();
        assert!(matches!(*messages, [cut] if cut.len() <= crate::attempt::MAX_MESSAGE && cut.contains("bytes cut")));
    }

    // 6.1: an attempt took what its body took, the waits before it left out
    #[tokio::test(start_paused = true)]
    async fn an_attempt_takes_as_long_as_its_body() {
        let mut context = RetryContext::new();
        context.begin();
        for _ in 0..2 {
            context.begin_attempt();
            tokio::time::advance(Duration::from_secs(2)).await;
            context.failed(&Verdict::retryable("timeout"), "slow".into());
            tokio::time::advance(Duration::from_secs(5)).await;
        }
        let took: Vec<_> = context.history().iter().map(|record| record.took).collect();
        assert_eq!(took, [Duration::from_secs(2); 2]);
        // once it has ended, the call takes no longer
        context.stopped(Stop::plain(StopReason::Exhausted));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(context.elapsed(), Duration::from_secs(14));
    }

    // B2.6
    #[test]
    fn the_map_has_three_keys() {
        let mut context = RetryContext::new();
        context.begin();
        context.begin_attempt();
        context.failed(&Verdict::retryable("rate_limit").code(429), "slow down".into());
        let map = context.to_map();
        assert_eq!(map.keys().collect::<Vec<_>>(), ["error_summary", "last_error_class", "retry_count"]);
        assert_eq!(map.get("retry_count"), Some(&Value::from(0)));
        assert_eq!(map.get("last_error_class"), Some(&Value::from("rate_limit")));
        let summary = Value::from(vec!["attempt 1: rate_limit (429): slow down"]);
        assert_eq!(map.get("error_summary"), Some(&summary));
    }
}
