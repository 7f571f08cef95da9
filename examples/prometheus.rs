//! A Prometheus endpoint: `GET /metrics` shows the retries of the process. The program works a little, scrapes itself as
//! Prometheus would, prints what it got, and ends. `dashboards/` has a Grafana dashboard and alerts for these numbers.
//!
//! `cargo run --example prometheus`

use std::error::Error;
use std::future::IntoFuture;

use axum::{Router, routing};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::observe::{MetricsObserver, install};
use retry_runtime::{Budget, Classify, retry};

#[derive(Debug, thiserror::Error, Classify)]
enum FetchError {
    #[error("the server is busy")]
    #[classify(retryable)]
    Busy,
    #[error("no such page")]
    #[classify(gone)]
    NotFound,
}

static BUDGET: Budget = Budget::new();

/// Works at once, at the second attempt, never, or is not there, by the page's number.
#[retry(name = "fetch", base_delay = "5ms", jitter = full, budget = &BUDGET, dead_letter(sink = dlq, job_id = page, payload = page), context = ctx)]
async fn fetch(dlq: &MemoryStore, page: u32) -> Result<u32, FetchError> {
    match page % 8 {
        0 => Err(FetchError::NotFound),
        1 => Err(FetchError::Busy),
        2 | 3 if ctx.attempts() == 1 => Err(FetchError::Busy),
        _ => Ok(page),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // First the recorder, then the observer. Waits are a histogram with buckets, which can be summed over many processes.
    let waits = Matcher::Full("retry_wait_seconds".to_owned());
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(waits, &[0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0])?
        .build_recorder();
    let rendered = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    install(MetricsObserver::new());

    let dlq = MemoryStore::new();
    for page in 1..=40 {
        let _counted = fetch(&dlq, page).await;
    }

    let app = Router::new().route("/metrics", routing::get(move || async move { rendered.render() }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(axum::serve(listener, app).into_future());

    // reqwest wants one, also where nothing is encrypted
    let _first = rustls::crypto::ring::default_provider().install_default();
    let metrics = reqwest::get(format!("http://{address}/metrics")).await?.error_for_status()?.text().await?;
    println!("{metrics}");
    server.abort();

    for expected in [
        "retry_calls_total{operation=\"fetch\",outcome=\"succeeded\"} 20",
        "retry_calls_total{operation=\"fetch\",outcome=\"recovered\"} 10",
        "retry_gave_up_total{operation=\"fetch\",reason=\"exhausted\"} 5",
        "retry_gave_up_total{operation=\"fetch\",reason=\"gone\"} 5",
        "dlq_parked_total{operation=\"fetch\",reason=\"exhausted\"} 5",
        "dlq_lost_total 0",
    ] {
        if !metrics.lines().any(|line| line == expected) {
            return Err(format!("the endpoint does not say `{expected}`").into());
        }
    }
    Ok(())
}
