//! Errors of other crates: one file for each, behind the feature of its name.

#[cfg(feature = "anyhow")]
mod anyhow;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "rusqlite")]
mod rusqlite;
mod serde_json;
#[cfg(feature = "tokio")]
mod tokio;

use std::error::Error;

use crate::verdict::Verdict;

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    if let Some(verdict) = serde_json::known(link) {
        return Some(verdict);
    }
    #[cfg(feature = "tokio")]
    if let Some(verdict) = tokio::known(link) {
        return Some(verdict);
    }
    #[cfg(feature = "http")]
    if let Some(verdict) = http::known(link) {
        return Some(verdict);
    }
    #[cfg(feature = "reqwest")]
    if let Some(verdict) = reqwest::known(link) {
        return Some(verdict);
    }
    #[cfg(feature = "rusqlite")]
    if let Some(verdict) = rusqlite::known(link) {
        return Some(verdict);
    }
    None
}
