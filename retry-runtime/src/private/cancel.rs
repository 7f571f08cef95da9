//! `cancel = FUTURE`: asked before an attempt, and beside every attempt and every wait.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::__private::record::{Hidden, Recorder};
use crate::engine::Stop;
use crate::refused::Refused;
use crate::stop::StopReason;

/// What `cancel = EXPR` takes.
#[diagnostic::on_unimplemented(
    message = "`cancel = ..` takes a future, not `{Self}`",
    label = "not a future",
    note = "for example `cancel = token.cancelled()`; the call ends when it completes"
)]
pub trait Cancels {
    type Future: Future;
    fn into_cancel(self) -> Self::Future;
}

#[diagnostic::do_not_recommend]
impl<F: IntoFuture> Cancels for F {
    type Future = F::IntoFuture;
    fn into_cancel(self) -> F::IntoFuture {
        self.into_future()
    }
}

/// The future of `cancel = EXPR`.
#[inline]
pub fn cancel_future<C: Cancels>(cancel: C) -> C::Future {
    cancel.into_cancel()
}

/// Whether the call is cancelled. After `true` it is not asked again.
#[inline]
pub fn is_cancelled<C: Future>(cancel: Pin<&mut C>, cx: &mut Context<'_>) -> bool {
    cancel.poll(cx).is_ready()
}

/// Polls an attempt or a wait, unless the call is cancelled: `None` says so.
#[inline]
pub fn unless_cancelled<C: Future, T>(
    cancel: Pin<&mut C>,
    cx: &mut Context<'_>,
    work: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<Option<T>> {
    if is_cancelled(cancel, cx) { Poll::Ready(None) } else { work(cx).map(Some) }
}

/// The call ends here.
#[cold]
pub fn cancelled<R: Recorder>(record: &mut R) -> Refused {
    record.stopped(Hidden(Stop::plain(StopReason::Cancelled)));
    Refused::new(StopReason::Cancelled, "the call was cancelled").after(record.last_failure())
}
