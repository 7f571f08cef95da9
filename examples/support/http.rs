//! The one HTTP client of the examples.

use std::error::Error;
use std::time::Duration;

use reqwest::redirect;

/// A client with a limit per request, TLS by rustls, and no redirects: a header with a key would follow them.
///
/// # Errors
/// What the TLS set-up says.
pub fn client(timeout: Duration) -> Result<reqwest::Client, reqwest::Error> {
    // The first one counts; a second call finds it installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().timeout(timeout).redirect(redirect::Policy::none()).build()
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
