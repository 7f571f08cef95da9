//! Futures of traits that make objects.

use std::future::Future;
use std::pin::Pin;

/// A future behind a pointer, so that traits with it make objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
