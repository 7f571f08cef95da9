//! Doing a job again by a request.

use std::error::Error as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use retry_runtime::dead_letter::{ReplayError, ReplayJob};
use retry_runtime::{Classify, StatusRules, Verdict, hints};

use crate::exit::Failure;

/// So much of an answer is kept as the error's text.
const SAID: usize = 1_500;

/// A server that does one job: a POST with the payload, `Idempotency-Key`, `DLQ-Job-Id`, `DLQ-Kind` and `DLQ-Fence`. A 2xx:
/// recovered. Anything else is judged by [`StatusRules::HTTP`], with the hints of the headers. Where nobody listens, the
/// operation stops.
#[derive(Clone, Debug)]
pub struct Http {
    url: Url,
    client: Client,
}

/// What a server, or the way to it, said.
struct Refused {
    verdict: Verdict,
    message: String,
}

impl Classify for Refused {
    fn classify(&self) -> Verdict {
        self.verdict
    }

    fn describe(&self) -> Option<String> {
        Some(self.message.clone())
    }
}

impl Http {
    /// A server at an address. Headers come from a file, a line each (`Authorization: Bearer ..`): secrets are no arguments.
    ///
    /// # Errors
    /// What is accepted.
    pub fn new(url: &str, headers: Option<&Path>, timeout: Duration) -> Result<Self, Failure> {
        let wrong =
            |why: &str| Failure::usage(format!("--http: {why}; accepted is http://HOST/PATH or https://HOST/PATH"));
        let url = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("another scheme"));
        }
        if url.password().is_some() {
            return Err(Failure::usage(
                "--http: a password in the address shows in the list of processes: put it into a file for --http-headers",
            ));
        }
        // Another part of the program may have chosen one already; both are well.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .timeout(timeout)
            .redirect(reqwest::redirect::Policy::none())
            .default_headers(headers.map_or_else(|| Ok(HeaderMap::new()), read_headers)?)
            .user_agent(concat!("dlq/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::failed(format!("cannot make a client for HTTP: {error}")))?;
        Ok(Self { url, client })
    }

    pub(super) fn shown(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.to_string()
    }

    pub(super) async fn run(self, job: ReplayJob) -> Result<(), ReplayError> {
        let mut request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        for (name, value) in [
            ("idempotency-key", job.idempotency_key.as_str()),
            ("dlq-job-id", job.job_id.as_str()),
            ("dlq-kind", job.kind.as_str()),
            ("dlq-fence", job.fence.to_string().as_str()),
        ] {
            // A job id may hold what no header can: it is in the letter, and the key is always there.
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                request = request.header(name, value);
            }
        }
        match request.body(job.json().unwrap_or_default().to_owned()).send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(refused(response).await.into()),
            Err(error) if error.is_connect() => Err(ReplayError::stop(format!("nobody listens: {}", because(&error)))),
            Err(error) if error.is_builder() => Err(ReplayError::stop(because(&error))),
            Err(error) => {
                let class = if error.is_timeout() { "timeout" } else { "connection" };
                let verdict = Verdict::retryable(class).outcome_unknown();
                Err(Refused { verdict, message: because(&error) }.into())
            }
        }
    }
}

/// Judges an answer, and keeps the beginning of what it says.
async fn refused(mut response: Response) -> Refused {
    let status = response.status();
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let hints = hints::from_headers(header, SystemTime::now());
    let mut body = Vec::new();
    while body.len() < SAID {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) | Err(_) => break,
        }
    }
    body.truncate(SAID);
    let body = String::from_utf8_lossy(&body);
    let said = if body.trim().is_empty() { String::new() } else { format!(": {}", body.trim()) };
    let verdict = hints.apply(StatusRules::HTTP.verdict(Some(i64::from(status.as_u16())), &body));
    Refused { verdict, message: format!("status {}{said}", status.as_u16()) }
}

/// An error with its causes, without the address: it may hold a secret.
fn because(error: &reqwest::Error) -> String {
    let mut said = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause.filter(|_| said.len() < 8) {
        said.push(error.to_string());
        cause = error.source();
    }
    if said.is_empty() { "the request failed".to_owned() } else { said.join(": ") }
}

fn read_headers(file: &Path) -> Result<HeaderMap, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::failed(format!("cannot read `{}`: {error}", file.display())))?;
    let mut headers = HeaderMap::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let header = line.split_once(':').and_then(|(name, value)| {
            let mut value = HeaderValue::from_str(value.trim()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value))
        });
        // The line may be the secret: it is not repeated.
        let wrong =
            || Failure::usage(format!("line {number} of `{}` is no header: accepted is `Name: value`", file.display()));
        let (name, value) = header.ok_or_else(wrong)?;
        headers.append(name, value);
    }
    Ok(headers)
}
