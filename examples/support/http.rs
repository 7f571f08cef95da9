//! The one HTTP client of the examples.

use std::error::Error;
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::redirect;
use retry_runtime::hints;

use super::time::scaled;

/// A client with a limit per request and TLS by rustls. A client that sends a key in a header follows no redirects: the
/// header would follow as well.
///
/// # Errors
/// What the TLS set-up says.
pub fn client(timeout: Duration, redirects: usize) -> Result<reqwest::Client, reqwest::Error> {
    // The first one counts; a second call finds it installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = || {
        let redirects = if redirects == 0 { redirect::Policy::none() } else { redirect::Policy::limited(redirects) };
        reqwest::Client::builder().timeout(timeout).redirect(redirects)
    };
    builder().build().or_else(|error| {
        eprintln!("{}: https will not work", describe(error)); // a machine without root certificates
        builder().tls_certs_only([]).build()
    })
}

/// How long a request may take: 30 s, scaled as waits are, but never so short that a server under load looks dead.
pub fn time_limit(local: bool) -> Duration {
    if local { Duration::from_secs(2) } else { scaled(Duration::from_secs(30)).max(Duration::from_secs(2)) }
}

/// The whole story of an error on one line, without its URL: URLs carry keys.
pub fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    for _ in 0..8 {
        let Some(inner) = cause else { break };
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// The wait that a `Retry-After` header asks for.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    hints::retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, SystemTime::now())
}

/// Everything but letters, digits and `-._~` as `%XX`.
pub fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.extend(format!("%{byte:02X}").chars()),
        }
    }
    encoded
}
