//! Turning an error into a [`Verdict`].
//!
//! Types of one's own derive [`Classify`]. Implementations for the standard library's errors, `serde_json`'s and this
//! crate's own are always there; those of other crates come with the feature of their name:
//!
//! | feature | types |
//! |---|---|
//! | `tokio` (default) | `tokio::time::error::Elapsed` |
//! | `anyhow` | `anyhow::Error` |
//! | `http` | `http::StatusCode` (also as a `status` field) and the crate's errors about malformed parts |
//! | `reqwest` | `reqwest::Error`, whatever hides among its causes |
//! | `reqwest-middleware` | `reqwest_middleware::Error`; and a middleware that retries |
//! | `hyper` | `hyper::Error` |
//! | `tonic` | `tonic::Status`, with its pushback and `RetryInfo` |
//! | `rusqlite` | `rusqlite::Error` |
//! | `sqlx` | `sqlx::Error`, whatever the database |
//! | `tokio-postgres` | `tokio_postgres::Error`, `DbError` |
//! | `redis` | `redis::RedisError` |
//!
//! A failure after which the work may have been done all the same - a time-out, a connection lost with the request under
//! way - is marked [`outcome_unknown`](Verdict::outcome_unknown). `Box<dyn Error>`, with or without `Send` and `Sync`, and
//! `anyhow::Error` ask their chain of sources: see [`of_chain`]. Failures told by a number and a text are decided by
//! [`StatusRules`], those of databases by [`sql_state`].

mod boxed;
mod fields;
mod foreign;
mod own_impls;
mod sql_state;
mod status_rules;
mod std_impls;

use crate::verdict::Verdict;

pub use boxed::{of_chain, of_chain_with};
pub use fields::{MessageField, RetryAfterField, StatusField};
pub use sql_state::sql_state;
pub use status_rules::StatusRules;

/// Says what should happen after a failure. Derive it, or write it by hand.
///
/// ```
/// use retry_runtime::{Classify, Verdict};
///
/// struct Refused;
///
/// impl Classify for Refused {
///     fn classify(&self) -> Verdict {
///         Verdict::retryable("connection")
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether a failure may be retried: it has no `Classify`",
    label = "`Classify` is missing for `{Self}`",
    note = "derive it: `#[derive(retry_runtime::Classify)]` with `#[classify(retryable)]` or `#[classify(permanent)]` on each variant",
    note = "or give the function a classifier of its own: `#[retry(classify = path::to::function)]` with `fn(&E) -> Verdict`"
)]
pub trait Classify {
    /// The verdict about this failure.
    fn classify(&self) -> Verdict;

    /// The failure as text, for letters and reports, where the error type is known only as `Classify`. The derive writes
    /// it from `Display`, or else `Debug`; by default there is no text.
    fn describe(&self) -> Option<String> {
        None
    }
}

macro_rules! through {
    ($($(#[$meta:meta])* $type:ty),* $(,)?) => {$(
        $(#[$meta])*
        impl<T: Classify + ?Sized> Classify for $type {
            fn classify(&self) -> Verdict {
                (**self).classify()
            }

            fn describe(&self) -> Option<String> {
                (**self).describe()
            }
        }
    )*};
}

through!(&T, &mut T, Box<T>, std::rc::Rc<T>, std::sync::Arc<T>);
