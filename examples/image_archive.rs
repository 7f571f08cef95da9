//! An archiver of images that stops asking for what is gone, and never asks again for what it has.
//!
//! A worker is asked first; what it refuses, or cannot fetch, is downloaded directly. A ledger in the database knows each
//! URL across runs: run it twice, and the second run fetches only what is still owed. Books that cannot be kept never stop
//! a fetch. Without the two routes' URLs it serves both itself, misbehaving. What becomes of the bytes is left out.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use futures_util::{StreamExt, stream};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, Url};
use retry_runtime::{Classify, retry};
use support::books::Books;
use support::plan::{Plan, SAMPLE_SEED};
use support::server::Server;
use support::{http, time};

mod support;

#[derive(Parser)]
#[command(about = "Fetches images by two routes; remembers what is done, gone and owed")]
struct Arguments {
    /// One absolute URL a line
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// Ledger, counters and dead letters
    #[arg(long, value_name = "PATH", default_value = "image_archive.db")]
    db: PathBuf,
    /// First route: GET {URL}/fetch?url=...
    #[arg(long, value_name = "URL")]
    worker_url: Option<Url>,
    /// Second route: path and query of the image's URL are asked here instead of at its own host
    #[arg(long, value_name = "URL")]
    direct_url: Option<Url>,
    /// Makes every wait that much shorter
    #[arg(long, value_name = "F", value_parser = time::parse_scale)]
    time_scale: Option<f64>,
}

#[derive(Clone, Debug, thiserror::Error, Classify)]
enum FetchError {
    #[error("gone: {status}")]
    #[classify(gone)]
    Gone { status: u16 },
    /// The worker's own no: it says nothing about the image.
    #[error("the worker refuses: {status}")]
    #[classify(permanent, class = "refused")]
    Refused { status: u16 },
    #[error("{status} instead of an image")]
    #[classify(retryable, class = "bad_status")]
    Status {
        status: u16,
        #[classify(retry_after)]
        retry_after: Option<Duration>,
    },
    #[error("{content_type} instead of an image")]
    #[classify(retryable)]
    NotAnImage { content_type: String },
    #[error("timed out: {0}")]
    #[classify(retryable, class = "timeout")]
    TimedOut(String),
    #[error("connection failed: {0}")]
    #[classify(retryable, class = "connection")]
    Connection(String),
    #[error("no absolute URL: {0}")]
    #[classify(permanent)]
    Unusable(String),
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        let timed_out = error.is_timeout();
        let told = http::describe(error);
        if timed_out { Self::TimedOut(told) } else { Self::Connection(told) }
    }
}

/// How an image came.
enum Fetched {
    ByWorker,
    Directly,
    /// The ledger says no: done, gone, or tried often enough.
    Skipped,
}

struct Archive {
    client: Client,
    worker: Url,
    direct: Option<Url>,
    books: Books,
}

/// The worker is asked up to three times; its refusal, or the last failure, goes on to the direct route, once.
#[retry(
    name = "image_archive",
    max_retries = 2,
    sleep = time::sleep,
    fallback = archive.directly(url).await,
    ledger(store = archive.books.store(), key = url, skipped = Ok(Fetched::Skipped)),
    dead_letter(sink = archive.books.store(), job_id = url, payload = url),
)]
async fn fetch(archive: &Archive, url: &str) -> Result<Fetched, FetchError> {
    archive.by_worker(url).await
}

impl Archive {
    async fn by_worker(&self, url: &str) -> Result<Fetched, FetchError> {
        let mut ask = self.worker.clone();
        if let Ok(mut path) = ask.path_segments_mut() {
            path.pop_if_empty().push("fetch");
        }
        ask.set_query(Some(&format!("url={}", http::percent_encoded(url))));
        let answer = self.client.get(ask).send().await?;
        if let status @ (403 | 451) = answer.status().as_u16() {
            self.books.count("worker_refused", 1);
            return Err(FetchError::Refused { status });
        }
        image(answer).await?;
        self.books.count("worker_ok", 1);
        Ok(Fetched::ByWorker)
    }

    async fn directly(&self, url: &str) -> Result<Fetched, FetchError> {
        match self.download(url).await {
            Ok(bytes) => {
                self.books.count("fallback_ok", 1);
                self.books.count_bytes("fallback_bytes", bytes);
                Ok(Fetched::Directly)
            }
            Err(gone @ FetchError::Gone { .. }) => Err(gone),
            Err(error) => {
                self.books.count("fallback_failed", 1);
                Err(error)
            }
        }
    }

    async fn download(&self, url: &str) -> Result<u64, FetchError> {
        let url = Url::parse(url).map_err(|error| FetchError::Unusable(error.to_string()))?;
        let from = match &self.direct {
            None => url,
            Some(direct) => {
                let mut from = direct.clone();
                from.set_path(&format!("{}{}", direct.path().trim_end_matches('/'), url.path()));
                from.set_query(url.query());
                from
            }
        };
        image(self.client.get(from).send().await?).await
    }
}

/// The size of the image that the answer is, if it is one.
async fn image(answer: Response) -> Result<u64, FetchError> {
    let status = answer.status().as_u16();
    match status {
        200 => {}
        404 | 410 => return Err(FetchError::Gone { status }),
        _ => return Err(FetchError::Status { status, retry_after: http::retry_after(answer.headers()) }),
    }
    let content_type =
        answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("nothing named");
    if !content_type.to_ascii_lowercase().starts_with("image/") {
        return Err(FetchError::NotAnImage { content_type: content_type.to_owned() });
    }
    Ok(answer.bytes().await?.len() as u64)
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("image_archive: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    if let Some(factor) = arguments.time_scale {
        time::scale_waits(factor);
    }
    let urls = read_urls(arguments)?;
    let server = match arguments.worker_url {
        Some(_) => None,
        None => Some(Server::start(Plan::seeded(SAMPLE_SEED)).await?),
    };
    let local: Option<Url> = server.as_ref().map(|server| server.url().parse()).transpose()?;
    let archive = Archive {
        client: http::client(http::time_limit(server.is_some()), 10)?,
        worker: arguments.worker_url.clone().or(local.clone()).ok_or("a worker is needed")?,
        direct: arguments.direct_url.clone().or(local),
        books: Books::open(&arguments.db, "image_archive"),
    };
    let known = urls.len();
    let urls: BTreeSet<&str> = urls.iter().map(String::as_str).collect();
    // A line that stands there twice is fetched once.
    let (mut fetched, mut fallback, mut gone, mut failed, mut skipped) = (0, 0, 0, 0, known - urls.len());
    let mut results = stream::iter(urls).map(async |url| (url, fetch(&archive, url).await)).buffer_unordered(AT_ONCE);
    while let Some((url, result)) = results.next().await {
        match result {
            Ok(Fetched::ByWorker) => fetched += 1,
            Ok(Fetched::Directly) => fallback += 1,
            Ok(Fetched::Skipped) => skipped += 1,
            Err(FetchError::Gone { .. }) => gone += 1,
            Err(error) => {
                failed += 1;
                eprintln!("{url}: {error}");
            }
        }
    }
    drop(results);
    archive.books.settle().await;
    let degraded = if archive.books.bytes_today("fallback_bytes").await > DEGRADED { "yes" } else { "no" };
    println!("fetched={fetched} fallback={fallback} gone={gone} failed={failed} skipped={skipped} degraded={degraded}");
    Ok(())
}

/// More fallback bytes a day than this is a hint to look at the worker, not a fault.
const DEGRADED: u64 = 500_000;

const AT_ONCE: usize = 8;

fn read_urls(arguments: &Arguments) -> Result<Vec<String>, Box<dyn Error>> {
    let Some(file) = &arguments.urls else {
        return Ok((1..=100).map(|n| format!("https://images.example/{n:03}.png")).collect());
    };
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
