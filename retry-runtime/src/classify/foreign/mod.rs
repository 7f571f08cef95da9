//! Errors of other crates: one file for each, behind the feature of its name.

#[cfg(feature = "anyhow")]
mod anyhow;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "hyper")]
mod hyper;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "reqwest-middleware")]
mod reqwest_middleware;
#[cfg(feature = "rusqlite")]
mod rusqlite;
mod serde_json;
#[cfg(feature = "sqlx")]
mod sqlx;
#[cfg(feature = "tokio")]
mod tokio;
#[cfg(feature = "tokio-postgres")]
mod tokio_postgres;
#[cfg(feature = "tonic")]
mod tonic;

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
    #[cfg(feature = "hyper")]
    if let Some(verdict) = hyper::known(link) {
        return Some(verdict);
    }
    #[cfg(feature = "redis")]
    if let Some(verdict) = redis::known(link) {
        return Some(verdict);
    }
    #[cfg(feature = "reqwest-middleware")]
    if let Some(verdict) = reqwest_middleware::known(link) {
        return Some(verdict);
    }
    #[cfg(feature = "sqlx")]
    if let Some(verdict) = sqlx::known(link) {
        return Some(verdict);
    }
    #[cfg(feature = "tokio-postgres")]
    if let Some(verdict) = tokio_postgres::known(link) {
        return Some(verdict);
    }
    #[cfg(feature = "tonic")]
    if let Some(verdict) = tonic::known(link) {
        return Some(verdict);
    }
    None
}
