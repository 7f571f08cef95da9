//! Traces and metrics for OpenTelemetry: a span for each call with its events, and counters by an observer of one's own. Both
//! go to stdout here; an OTLP exporter takes the place of the two stdout ones, and nothing else changes.
//!
//! `cargo run --example opentelemetry`

use std::error::Error;

use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{KeyValue, global};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use retry_runtime::observe::{Event, Observer, TracingObserver, What, install};
use retry_runtime::{Classify, retry};
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The numbers of `MetricsObserver`, as instruments of OpenTelemetry.
struct Instruments {
    calls: Counter<u64>,
    attempts_failed: Counter<u64>,
    gave_up: Counter<u64>,
    waits: Histogram<f64>,
}

impl Instruments {
    fn new(meter: &Meter) -> Self {
        Self {
            calls: meter.u64_counter("retry.calls").build(),
            attempts_failed: meter.u64_counter("retry.attempts_failed").build(),
            gave_up: meter.u64_counter("retry.gave_up").build(),
            waits: meter.f64_histogram("retry.wait").with_unit("s").build(),
        }
    }
}

impl Observer for Instruments {
    fn on(&self, event: &Event<'_>) {
        let operation = KeyValue::new("operation", event.operation);
        if let Some(outcome) = event.outcome() {
            self.calls.add(1, &[operation.clone(), KeyValue::new("outcome", outcome)]);
        }
        match event.what {
            What::AttemptFailed { .. } => {
                self.attempts_failed.add(1, &[operation, KeyValue::new("class", event.class.unwrap_or_default())]);
            }
            What::RetryScheduled { delay, .. } => self.waits.record(delay.as_secs_f64(), &[operation]),
            What::GivenUp { reason, .. } => {
                self.gave_up.add(1, &[operation, KeyValue::new("reason", reason.as_str())]);
            }
            _ => {}
        }
    }
}

#[derive(Debug, thiserror::Error, Classify)]
enum FetchError {
    #[error("timed out")]
    #[classify(retryable)]
    Timeout,
    #[error("forbidden")]
    #[classify(permanent)]
    Forbidden,
}

#[retry(name = "fetch", base_delay = "5ms", context = ctx)]
async fn fetch(page: &str) -> Result<usize, FetchError> {
    match page {
        "slow" if ctx.attempts() < 3 => Err(FetchError::Timeout),
        "secret" => Err(FetchError::Forbidden),
        _ => Ok(page.len()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let resource =
        Resource::builder_empty().with_attribute(KeyValue::new("service.name", "opentelemetry-example")).build();
    let traces = SdkTracerProvider::builder()
        .with_simple_exporter(opentelemetry_stdout::SpanExporter::default())
        .with_resource(resource.clone())
        .build();
    let numbers = SdkMeterProvider::builder()
        .with_periodic_exporter(opentelemetry_stdout::MetricExporter::default())
        .with_resource(resource)
        .build();
    global::set_tracer_provider(traces.clone());
    global::set_meter_provider(numbers.clone());

    let to_traces = tracing_opentelemetry::layer().with_tracer(traces.tracer("retry"));
    tracing_subscriber::registry().with(to_traces).try_init()?;
    install((TracingObserver, Instruments::new(&numbers.meter("retry"))));

    // the spans of the calls are children of the request's
    let request = tracing::info_span!("request");
    async {
        for page in ["news", "slow", "secret"] {
            println!("{page}: {:?}", fetch(page).await);
        }
    }
    .instrument(request)
    .await;

    // nothing is left behind when the program ends
    numbers.shutdown()?;
    traces.shutdown()?;
    Ok(())
}
