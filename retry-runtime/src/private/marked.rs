//! Attempts whose polls are marked, in tests: as large as the future inside.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::nest::Mark;

pin_project! {
    /// An attempt, and what tells the operation's name, if it is to be marked: a closure without a size, where that is a constant.
    pub struct Marked<N, F> {
        operation: N,
        #[pin]
        attempt: F,
    }
}

/// An attempt whose polls are marked.
#[inline]
pub fn attempt<N: Fn() -> Option<&'static str>, F: Future>(operation: N, attempt: F) -> Marked<N, F> {
    Marked { operation, attempt }
}

impl<N: Fn() -> Option<&'static str>, F: Future> Future for Marked<N, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _until_polled = Mark::new((this.operation)());
        this.attempt.poll(cx)
    }
}

impl<N, F> fmt::Debug for Marked<N, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Marked")
    }
}
