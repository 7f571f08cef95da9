//! `Retry::cancel`: what a call does with a cancelling future, and what it is without one.

use std::future::Pending;

use crate::refused::Refused;

/// A [`Retry`](crate::Retry) that nothing cancels: a future that never completes.
pub type Uncancelled = Pending<Never>;

/// Of this there is no value.
#[derive(Clone, Copy, Debug)]
pub enum Never {}

/// What the future of [`Retry::cancel`](crate::Retry::cancel) completes with.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Cancelled;

/// Whether a call can be cancelled, and what it then returns.
pub trait CancelWith<E> {
    /// Whether there is a cancelling future.
    const CANCELS: bool;
    /// The error of a cancelled call.
    fn error(self, refused: Refused) -> E;
}

impl<E> CancelWith<E> for Never {
    const CANCELS: bool = false;
    fn error(self, _: Refused) -> E {
        match self {}
    }
}

impl<E: FromRefusal> CancelWith<E> for Cancelled {
    const CANCELS: bool = true;
    fn error(self, refused: Refused) -> E {
        E::from_refusal(refused)
    }
}

/// An error with a value for a cancelled call: one that is `From<Refused>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no value for a call that was cancelled",
    label = "`cancel` needs `From<retry_runtime::Refused>` for the error",
    note = "write `impl From<retry_runtime::Refused> for {Self}`, or use `run_reporting`"
)]
pub trait FromRefusal {
    #[doc(hidden)]
    fn from_refusal(refused: Refused) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<Refused>> FromRefusal for E {
    fn from_refusal(refused: Refused) -> E {
        refused.into()
    }
}
