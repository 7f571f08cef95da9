//! What an observer is told.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::notice::OneLine;
use super::span::CallSpan;
use crate::error::StoreError;
use crate::stop::StopReason;

/// Something that happened in a call. Its text is one line for people; it never holds an argument or an error's own text.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// What happened.
    pub what: What<'a>,
    /// The operation's name: `name = ..`, or module path and function.
    pub operation: &'static str,
    /// A number that all events of this call have in common, and no other call of this process has.
    pub call: u64,
    /// How many attempts were made so far, the running one included; 0 before the first. A fallback counts as one.
    pub attempt: u32,
    /// At most so many are made, the fallback not counted; `None`: as many as it takes.
    pub max_attempts: Option<u64>,
    /// In how many attempts of other retried calls, one in another, the call was made, as far as those are marked: see
    /// [`Nested`](crate::Nested). 0 outside of all.
    pub depth: u32,
    /// The class of the last failed attempt; `None` when none has failed.
    pub class: Option<&'static str>,
    /// The code of the last failed attempt, where it carries one.
    pub code: Option<i64>,
    /// The time since the call's start.
    pub elapsed: Duration,
    /// The job's id, of an event about a letter.
    pub job_id: Option<&'a str>,
    /// What the call's budget held when it last asked it, in thousandths of a token; `None` without a budget, and before it
    /// was asked.
    pub milli_tokens: Option<u64>,
    /// The fallback ran, and is one of the attempts so far.
    pub(crate) fell_back: bool,
    #[cfg_attr(not(feature = "tracing"), allow(dead_code))] // nobody else looks at it
    pub(crate) span: &'a CallSpan,
}

/// What happened, with what only such an event has.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum What<'a> {
    /// The body is about to run.
    #[non_exhaustive]
    AttemptStarted,
    /// An attempt failed.
    #[non_exhaustive]
    AttemptFailed {
        /// How long it ran.
        took: Duration,
    },
    /// Another attempt comes after a wait.
    #[non_exhaustive]
    RetryScheduled {
        /// The wait.
        delay: Duration,
    },
    /// An attempt was not made.
    #[non_exhaustive]
    Refused {
        /// What refused it: `BudgetDenied`, `BreakerOpen`, `Deadline`, `Cancelled`, or `LedgerRefused`, which ends the call.
        reason: StopReason,
    },
    /// The first attempt succeeded. Ends the call.
    #[non_exhaustive]
    Succeeded,
    /// An attempt after the first succeeded. Ends the call.
    #[non_exhaustive]
    Recovered,
    /// The second route ended. When it succeeded, that ends the call.
    #[non_exhaustive]
    Fallback {
        /// Why the first route was given up.
        reason: StopReason,
        /// Whether it succeeded; if not, `class` and `code` are those of its own error.
        succeeded: bool,
    },
    /// The call failed. Ends it.
    #[non_exhaustive]
    GivenUp {
        /// Why.
        reason: StopReason,
        /// Whether an attempt was cut off in its middle: cancelled, dropped, or by a panic.
        unfinished: bool,
    },
    /// The letter is in the store.
    #[non_exhaustive]
    Parked {
        /// Why the call gave up.
        reason: StopReason,
        /// The letter's id in the store.
        letter_id: &'a str,
    },
    /// The store failed, and the letter is in the spill file.
    #[non_exhaustive]
    Spilled {
        /// Why the call gave up.
        reason: StopReason,
        /// The spill file.
        path: &'a Path,
        /// What the store said.
        because: &'a StoreError,
    },
    /// The letter is nowhere: store and spill both failed.
    #[non_exhaustive]
    ParkFailed {
        /// Why the call gave up.
        reason: StopReason,
        /// What the last of them said.
        because: &'a StoreError,
    },
}

impl Event<'_> {
    /// The event's name, alike in every place that shows it: `attempt_started`, `attempt_failed`, `retry_scheduled`,
    /// `refused`, `succeeded`, `recovered`, `fallback`, `gave_up`, `parked`, `spilled`, `park_failed`.
    pub const fn name(&self) -> &'static str {
        match self.what {
            What::AttemptStarted => "attempt_started",
            What::AttemptFailed { .. } => "attempt_failed",
            What::RetryScheduled { .. } => "retry_scheduled",
            What::Refused { .. } => "refused",
            What::Succeeded => "succeeded",
            What::Recovered => "recovered",
            What::Fallback { .. } => "fallback",
            What::GivenUp { .. } => "gave_up",
            What::Parked { .. } => "parked",
            What::Spilled { .. } => "spilled",
            What::ParkFailed { .. } => "park_failed",
        }
    }

    /// Why: of a refusal, a fallback, a call that gave up, and of its letter.
    pub const fn reason(&self) -> Option<StopReason> {
        match self.what {
            What::Refused { reason }
            | What::Fallback { reason, .. }
            | What::GivenUp { reason, .. }
            | What::Parked { reason, .. }
            | What::Spilled { reason, .. }
            | What::ParkFailed { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// The wait before the next attempt.
    pub const fn delay(&self) -> Option<Duration> {
        match self.what {
            What::RetryScheduled { delay } => Some(delay),
            _ => None,
        }
    }

    /// How the call ended, of an event that ends it: `succeeded`, `recovered`, `fallback`, `gave_up` or `refused`.
    pub const fn outcome(&self) -> Option<&'static str> {
        match self.what {
            What::Succeeded
            | What::Recovered
            | What::Fallback { succeeded: true, .. }
            | What::GivenUp { .. }
            | What::Refused { reason: StopReason::LedgerRefused } => Some(self.name()),
            _ => None,
        }
    }
}

/// One line: what comes from outside is escaped in it.
impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        OneLine(Said(self)).fmt(f)
    }
}

struct Said<'a>(&'a Event<'a>);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(event) = self;
        write!(f, "{}: ", event.operation)?;
        let (attempt, of, class) = (event.attempt, Of(event.max_attempts), Failure(event));
        let elapsed = Short(event.elapsed);
        match event.what {
            What::AttemptStarted => write!(f, "attempt {attempt}{of} started"),
            What::AttemptFailed { took } => write!(f, "attempt {attempt}{of} failed ({class}) after {}", Short(took)),
            What::RetryScheduled { delay } => {
                write!(f, "attempt {attempt}{of} failed ({class}), retrying in {}", Short(delay))
            }
            What::Refused { reason: StopReason::LedgerRefused } => f.write_str("not run (ledger_refused)"),
            What::Refused { reason } => write!(f, "attempt {}{of} refused ({reason})", attempt.saturating_add(1)),
            What::Succeeded => write!(f, "succeeded in {elapsed}"),
            What::Recovered => write!(f, "succeeded at attempt {attempt}{of} in {elapsed}; the one before: {class}"),
            What::Fallback { reason, succeeded: true } => {
                write!(f, "the fallback succeeded in {elapsed}, after the first route ended ({reason}): {class}")
            }
            What::Fallback { reason, .. } => {
                write!(f, "the fallback failed ({class}) in {elapsed}, after the first route ended ({reason})")
            }
            What::GivenUp { reason, .. } => {
                // the fallback is none of the attempts that `max_retries` counts, and a class may have another number
                let made = attempt.saturating_sub(u32::from(event.fell_back));
                let of =
                    Of(event.max_attempts.filter(|max| *max == u64::from(made) || reason != StopReason::Exhausted));
                let s = if of.0.unwrap_or(u64::from(made)) == 1 { "" } else { "s" };
                let fallback = if event.fell_back { " and the fallback" } else { "" };
                write!(f, "gave up after {made}{of} attempt{s}{fallback} in {elapsed} ({reason})")?;
                if event.class.is_some() { write!(f, ": {class}") } else { Ok(()) }
            }
            What::Parked { reason, letter_id } => {
                write!(f, "job {} parked ({reason}) as {letter_id}", Job(event.job_id))
            }
            What::Spilled { reason, path, because } => {
                write!(f, "job {} spilled ({reason}) to {}: {because}", Job(event.job_id), path.display())
            }
            What::ParkFailed { reason, because } => {
                write!(f, "job {} LOST ({reason}): {because}", Job(event.job_id))
            }
        }
    }
}

/// ` of 3`
struct Of(Option<u64>);

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |max| write!(f, " of {max}"))
    }
}

/// `timeout`, or `rate_limit 429`
struct Failure<'a>(&'a Event<'a>);

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.class.unwrap_or("no failure"))?;
        self.0.code.map_or(Ok(()), |code| write!(f, " {code}"))
    }
}

struct Job<'a>(Option<&'a str>);

impl fmt::Display for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.unwrap_or("without id"))
    }
}

/// A duration as people read it: three digits are enough.
struct Short(Duration);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let unit = match nanos {
            0..1_000 => 1,
            1_000..1_000_000 => 1_000,
            1_000_000..1_000_000_000 => 1_000_000,
            _ => 10_000_000,
        };
        let rounded = u64::try_from(nanos / unit * unit).unwrap_or(u64::MAX);
        write!(f, "{:?}", Duration::from_nanos(rounded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreErrorKind;

    static SPAN: CallSpan = CallSpan::new();

    fn event(what: What<'_>) -> Event<'_> {
        Event {
            what,
            operation: "fetch",
            call: 1,
            attempt: 2,
            max_attempts: Some(3),
            depth: 0,
            class: Some("timeout"),
            code: None,
            elapsed: Duration::from_micros(1_234_567),
            job_id: Some("a1"),
            milli_tokens: None,
            fell_back: false,
            span: &SPAN,
        }
    }

    // 1.1: of how many says the limit that ended the call, or none; a fallback is none of them
    #[test]
    fn a_call_that_gave_up_made_its_attempts_out_of_no_more() {
        let line = |attempt, max_attempts, fell_back, reason| {
            let what = What::GivenUp { reason, unfinished: false };
            let said = Event { attempt, max_attempts, fell_back, ..event(what) }.to_string();
            said.trim_start_matches("fetch: gave up after ").to_owned()
        };
        let (exhausted, permanent) = (StopReason::Exhausted, StopReason::Permanent);
        for (found, expected) in [
            (line(3, Some(3), false, exhausted), "3 of 3 attempts in 1.23s (exhausted): timeout"),
            (line(3, Some(5), false, exhausted), "3 attempts in 1.23s (exhausted): timeout"),
            (line(1, Some(5), false, exhausted), "1 attempt in 1.23s (exhausted): timeout"),
            (line(1, Some(1), false, exhausted), "1 of 1 attempt in 1.23s (exhausted): timeout"),
            (line(1, Some(5), false, permanent), "1 of 5 attempts in 1.23s (permanent): timeout"),
            (line(8, Some(7), true, exhausted), "7 of 7 attempts and the fallback in 1.23s (exhausted): timeout"),
            (line(2, Some(5), true, permanent), "1 of 5 attempts and the fallback in 1.23s (permanent): timeout"),
            (line(2, None, false, exhausted), "2 attempts in 1.23s (exhausted): timeout"),
        ] {
            assert_eq!(found, expected);
        }
    }

    // 12.1, 1.1: operation, attempt of max, class, wait, reason
    #[test]
    fn every_event_is_a_line_for_people() {
        let reason = StopReason::Exhausted;
        let because = &StoreError::new(StoreErrorKind::Full, "no space left");
        let delay = Duration::from_secs(2);
        let path = Path::new("jobs.ndjson");
        for (what, name, line) in [
            (What::AttemptStarted, "attempt_started", "fetch: attempt 2 of 3 started"),
            (
                What::AttemptFailed { took: Duration::from_nanos(7_654_321) },
                "attempt_failed",
                "fetch: attempt 2 of 3 failed (timeout) after 7ms",
            ),
            (
                What::RetryScheduled { delay },
                "retry_scheduled",
                "fetch: attempt 2 of 3 failed (timeout), retrying in 2s",
            ),
            (
                What::Refused { reason: StopReason::BudgetDenied },
                "refused",
                "fetch: attempt 3 of 3 refused (budget_denied)",
            ),
            (What::Refused { reason: StopReason::LedgerRefused }, "refused", "fetch: not run (ledger_refused)"),
            (What::Succeeded, "succeeded", "fetch: succeeded in 1.23s"),
            (What::Recovered, "recovered", "fetch: succeeded at attempt 2 of 3 in 1.23s; the one before: timeout"),
            (
                What::Fallback { reason, succeeded: true },
                "fallback",
                "fetch: the fallback succeeded in 1.23s, after the first route ended (exhausted): timeout",
            ),
            (
                What::Fallback { reason, succeeded: false },
                "fallback",
                "fetch: the fallback failed (timeout) in 1.23s, after the first route ended (exhausted)",
            ),
            (
                What::GivenUp { reason, unfinished: false },
                "gave_up",
                // fewer than the largest number: that of a class was used up
                "fetch: gave up after 2 attempts in 1.23s (exhausted): timeout",
            ),
            (What::Parked { reason, letter_id: "7" }, "parked", "fetch: job a1 parked (exhausted) as 7"),
            (
                What::Spilled { reason, path, because },
                "spilled",
                "fetch: job a1 spilled (exhausted) to jobs.ndjson: no space left",
            ),
            (What::ParkFailed { reason, because }, "park_failed", "fetch: job a1 LOST (exhausted): no space left"),
        ] {
            let event = event(what);
            assert_eq!((event.name(), event.to_string().as_str()), (name, line));
        }
    }

    // 12.1: the table of the docs has every event, and no other
    #[test]
    fn the_table_names_every_event() {
        let rows = include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("//! | `"));
        let listed: Vec<&str> = rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name).collect();
        let named: Vec<&str> = include_str!("event.rs")
            .lines()
            .filter_map(|line| line.trim().strip_prefix("What::")?.split_once(" => \"")?.1.strip_suffix("\","))
            .collect();
        assert_eq!(named.len(), 11);
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        assert_eq!(sorted(listed), sorted(named));
    }

    #[test]
    fn without_a_limit_a_class_or_an_id_the_line_says_so() {
        let coded = Event { max_attempts: None, code: Some(429), ..event(What::AttemptStarted) };
        assert_eq!(coded.to_string(), "fetch: attempt 2 started");
        let delay = Duration::from_millis(1_500);
        let coded = Event { what: What::RetryScheduled { delay }, ..coded };
        assert_eq!(coded.to_string(), "fetch: attempt 2 failed (timeout 429), retrying in 1.5s");
        let early = Event {
            attempt: 0,
            class: None,
            ..event(What::GivenUp { reason: StopReason::BreakerOpen, unfinished: false })
        };
        assert_eq!(early.to_string(), "fetch: gave up after 0 of 3 attempts in 1.23s (breaker_open)");
        let nameless = Event { job_id: None, ..event(What::Parked { reason: StopReason::Permanent, letter_id: "7" }) };
        assert_eq!(nameless.to_string(), "fetch: job without id parked (permanent) as 7");
    }
}
