//! Events as numbers, through the `metrics` facade.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use super::event::{Event, What};
use super::observer::Observer;

/// Counts through the `metrics` facade (feature `metrics`), for whatever recorder the program has. To be made after the
/// recorder is installed: it describes what it counts.
///
/// ```no_run
/// use retry_runtime::observe::{MetricsObserver, install};
///
/// // .. install a recorder, such as metrics-exporter-prometheus
/// assert!(install(MetricsObserver::new()));
/// ```
///
/// | metric | kind | labels | counts |
/// |---|---|---|---|
/// | `retry_calls_total` | counter | `operation`, `outcome` | calls that ended: `succeeded`, `recovered`, `fallback`, `gave_up`, `refused` |
/// | `retry_attempts_total` | counter | `operation`, `class` | attempts that ended: `ok`, the class of the failure, or why it was cut off: `cancelled`, `dropped`, `panicked`. A fallback is one |
/// | `retry_gave_up_total` | counter | `operation`, `reason` | calls that failed |
/// | `retry_wait_seconds` | histogram | | waits before retries |
/// | `retry_budget_tokens` | gauge | | tokens of the budget that was asked last |
/// | `dlq_parked_total` | counter | `operation`, `reason` | letters in the store, parked by calls of this process; of jobs whose process died the notice `jobs_crashed` tells |
/// | `dlq_spilled_total` | counter | | letters in a spill file, since the store failed |
/// | `dlq_lost_total` | counter | | letters that are nowhere |
/// | `retry_observer_panics_total` | counter | | panics of observers, this one or another |
///
/// The waits are a histogram with buckets only if the exporter is told so, as the example `prometheus` does with
/// `set_buckets_for_metric`; otherwise a Prometheus exporter makes a summary of them, and dashboard and alerts about waits
/// have nothing to show.
///
/// Every label is out of a set that the program's text bounds: operations, classes, reasons, outcomes. With several budgets
/// the gauge shows now one and now the other; `Budget::tokens` tells of each.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MetricsObserver;

impl MetricsObserver {
    /// Describes the metrics. Counters without labels are there from now on, at zero, so that the first loss is seen as an
    /// increase.
    pub fn new() -> Self {
        describe_counter!("retry_calls_total", "Calls that ended, by outcome.");
        describe_counter!("retry_attempts_total", "Attempts that ended, by class of failure; `ok` for a success.");
        describe_counter!("retry_gave_up_total", "Calls that failed, by reason.");
        describe_histogram!("retry_wait_seconds", Unit::Seconds, "Waits before retries.");
        describe_gauge!("retry_budget_tokens", "Tokens of the retry budget that was asked last.");
        describe_counter!("dlq_parked_total", "Dead letters in the store, by reason.");
        describe_counter!("dlq_spilled_total", "Dead letters in a spill file, since the store failed.");
        describe_counter!("dlq_lost_total", "Dead letters that are nowhere: store and spill both failed.");
        describe_counter!("retry_observer_panics_total", "Panics of observers.");
        counter!("dlq_spilled_total").increment(0);
        counter!("dlq_lost_total").increment(0);
        counter!("retry_observer_panics_total").increment(0);
        Self
    }
}

impl Default for MetricsObserver {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for MetricsObserver {
    fn on(&self, event: &Event<'_>) {
        let operation = event.operation;
        if let Some(outcome) = event.outcome() {
            counter!("retry_calls_total", "operation" => operation, "outcome" => outcome).increment(1);
        }
        if let Some(class) = ended_attempt(event) {
            counter!("retry_attempts_total", "operation" => operation, "class" => class).increment(1);
        }
        match event.what {
            What::RetryScheduled { delay } => histogram!("retry_wait_seconds").record(delay),
            What::GivenUp { reason, .. } => {
                counter!("retry_gave_up_total", "operation" => operation, "reason" => reason.as_str()).increment(1);
            }
            What::Parked { reason, .. } => {
                counter!("dlq_parked_total", "operation" => operation, "reason" => reason.as_str()).increment(1);
            }
            What::Spilled { .. } => counter!("dlq_spilled_total").increment(1),
            What::ParkFailed { .. } => counter!("dlq_lost_total").increment(1),
            _ => {}
        }
        if asked_the_budget(event) {
            if let Some(tokens) = event.milli_tokens {
                #[allow(clippy::cast_precision_loss)] // thousandths of at most four billion
                gauge!("retry_budget_tokens").set(tokens as f64 / 1000.0);
            }
        }
    }
}

/// How the attempt ended that ended with this event.
const fn ended_attempt(event: &Event<'_>) -> Option<&'static str> {
    match event.what {
        What::AttemptFailed { .. } | What::Fallback { succeeded: false, .. } => event.class,
        What::Succeeded | What::Recovered | What::Fallback { succeeded: true, .. } => Some("ok"),
        What::GivenUp { reason, unfinished: true } => Some(reason.as_str()),
        _ => None,
    }
}

const fn asked_the_budget(event: &Event<'_>) -> bool {
    matches!(event.what, What::RetryScheduled { .. } | What::Refused { .. } | What::Succeeded | What::Recovered)
}

/// An observer panicked.
pub(super) fn observer_panicked() {
    counter!("retry_observer_panics_total").increment(1);
}
