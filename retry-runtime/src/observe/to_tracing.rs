//! Events as spans and log lines of `tracing`.

use std::time::Duration;

use tracing::Level;
use tracing::field::Empty;

use super::event::{Event, What};
use super::notice::{self, Notice, OneLine};
use super::observer::Observer;
use crate::stop::StopReason;

/// Tells `tracing` (feature `tracing`): a span `retry` for each call, and an event in it for everything that happens.
///
/// ```no_run
/// use retry_runtime::observe::{TracingObserver, install};
///
/// assert!(install(TracingObserver));
/// ```
///
/// ```text
/// WARN fetch: attempt 2 of 3 failed (timeout), retrying in 2s
/// ```
///
/// The message is a line for people; the fields are for machines: `event`, `operation`, `call`, `attempt`, `max_attempts`,
/// `class`, `code`, `reason`, `delay_ms`, `elapsed_ms`, `job_id`, each where the event has it. The span has `operation`,
/// `call` and `max_attempts`, and at its end `attempts`, `class`, `reason`, `outcome` and `elapsed_ms`. Everything has the
/// target `retry_runtime`.
///
/// | level | events |
/// |---|---|
/// | `ERROR` | `gave_up`, `spilled`, `park_failed` |
/// | `WARN` | `retry_scheduled`, `refused`, `fallback`, `parked`; `gave_up` as `cancelled` or `dropped` |
/// | `INFO` | `recovered`; `gave_up` as `gone`, `refused` as `ledger_refused`: final answers; the span |
/// | `DEBUG` | `attempt_failed` |
/// | `TRACE` | `attempt_started`, `succeeded` |
///
/// The span is a child of the one that was current when the call began. It is not entered while the body runs: what the body
/// says belongs to the span around the call, as it does without retries. With this feature [`Notice`](super::Notice)s become
/// events as well, at `WARN` and `ERROR`, where a subscriber wants them; a line on stderr is what they are where none does.
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingObserver;

impl TracingObserver {
    /// The same as the name alone.
    pub const fn new() -> Self {
        Self
    }
}

impl Observer for TracingObserver {
    fn on(&self, event: &Event<'_>) {
        let span = event.span.0.get_or_init(|| {
            tracing::info_span!(
                target: "retry_runtime",
                "retry",
                operation = event.operation,
                call = number(event.call),
                max_attempts = event.max_attempts.map(number),
                attempts = Empty,
                class = Empty,
                reason = Empty,
                outcome = Empty,
                elapsed_ms = Empty,
            )
        });
        say(span, event);
        if let Some(outcome) = event.outcome() {
            span.record("attempts", i64::from(event.attempt))
                .record("class", event.class)
                .record("reason", event.reason().map(StopReason::as_str))
                .record("outcome", outcome)
                .record("elapsed_ms", millis(event.elapsed));
        }
    }
}

/// A level is part of what `tracing` knows of a place before it runs: hence one place for each.
macro_rules! say_at {
    ($span:expr, $event:expr, $level:expr; $($levels:ident)*) => {
        match $level {
            $(Level::$levels => tracing::event!(
                target: "retry_runtime",
                parent: $span,
                Level::$levels,
                event = $event.name(),
                operation = $event.operation,
                call = number($event.call),
                attempt = i64::from($event.attempt),
                max_attempts = $event.max_attempts.map(number),
                class = $event.class,
                code = $event.code,
                reason = $event.reason().map(StopReason::as_str),
                delay_ms = $event.delay().map(millis),
                elapsed_ms = millis($event.elapsed),
                job_id = $event.job_id,
                "{}",
                $event
            ),)*
        }
    };
}

fn say(span: &tracing::Span, event: &Event<'_>) {
    say_at!(span, event, level(event); ERROR WARN INFO DEBUG TRACE);
}

const fn level(event: &Event<'_>) -> Level {
    match event.what {
        What::GivenUp { reason, .. } => match reason {
            StopReason::Gone => Level::INFO,
            StopReason::Cancelled | StopReason::Dropped => Level::WARN,
            _ => Level::ERROR,
        },
        What::Refused { reason: StopReason::LedgerRefused } | What::Recovered => Level::INFO,
        What::Spilled { .. } | What::ParkFailed { .. } => Level::ERROR,
        What::RetryScheduled { .. } | What::Refused { .. } | What::Fallback { .. } | What::Parked { .. } => Level::WARN,
        What::AttemptFailed { .. } => Level::DEBUG,
        What::AttemptStarted | What::Succeeded => Level::TRACE,
    }
}

/// Whole milliseconds.
fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// With a sign: OpenTelemetry knows no other whole numbers, and would make a text of it.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Says a notice as an event. `false`: no subscriber wants it.
pub(super) fn notice(notice: &Notice) -> bool {
    let Notice { level, name, operation, message } = notice;
    macro_rules! say_notice {
        ($level:ident) => {{
            let wanted = tracing::event_enabled!(target: "retry_runtime", Level::$level);
            tracing::event!(target: "retry_runtime", Level::$level, notice = name, operation, "{}", OneLine(message));
            wanted
        }};
    }
    match level {
        notice::Level::Warning => say_notice!(WARN),
        notice::Level::Error => say_notice!(ERROR),
    }
}
