//! What is returned where the body gave no error value: made of what ended the call.

use crate::refused::{Elapsed, Refused};

/// What is returned where the body gave no error value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no value for an attempt that timed out",
    label = "`attempt_timeout` needs `From<retry_runtime::Elapsed>` for the error",
    note = "write `impl From<retry_runtime::Elapsed> for {Self}`, or return `Result<T, retry_runtime::GaveUp<{Self}>>`"
)]
pub trait FromElapsed<L> {
    fn from_elapsed(elapsed: Elapsed) -> L;
}

#[diagnostic::do_not_recommend]
impl<E: From<Elapsed>> FromElapsed<E> for E {
    fn from_elapsed(elapsed: Elapsed) -> E {
        elapsed.into()
    }
}

impl<E> FromElapsed<Option<E>> for E {
    fn from_elapsed(_: Elapsed) -> Option<E> {
        None
    }
}

/// What is returned where no attempt ran.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no value for a call that was refused",
    label = "`ledger` without `skipped` needs `From<retry_runtime::Refused>` for the error",
    note = "say what a refused call returns: `ledger(.., skipped = Ok(..))`",
    note = "or write `impl From<retry_runtime::Refused> for {Self}`, or return `Result<T, retry_runtime::GaveUp<{Self}>>`"
)]
pub trait FromRefused<L> {
    fn from_refused(refused: Refused) -> L;
}

#[diagnostic::do_not_recommend]
impl<E: From<Refused>> FromRefused<E> for E {
    fn from_refused(refused: Refused) -> E {
        refused.into()
    }
}

impl<E> FromRefused<Option<E>> for E {
    fn from_refused(_: Refused) -> Option<E> {
        None
    }
}

/// What is returned where the call was cancelled.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no value for a call that was cancelled",
    label = "`cancel` needs `From<retry_runtime::Refused>` for the error",
    note = "write `impl From<retry_runtime::Refused> for {Self}`, or return `Result<T, retry_runtime::GaveUp<{Self}>>`"
)]
pub trait FromCancelled<L> {
    fn from_cancelled(refused: Refused) -> L;
}

#[diagnostic::do_not_recommend]
impl<E: From<Refused>> FromCancelled<E> for E {
    fn from_cancelled(refused: Refused) -> E {
        refused.into()
    }
}

impl<E> FromCancelled<Option<E>> for E {
    fn from_cancelled(_: Refused) -> Option<E> {
        None
    }
}

/// What is returned where the breaker let no attempt run.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no value for a call that the breaker refused",
    label = "`breaker` needs `From<retry_runtime::Refused>` for the error",
    note = "write `impl From<retry_runtime::Refused> for {Self}`, or return `Result<T, retry_runtime::GaveUp<{Self}>>`"
)]
pub trait FromBroken<L> {
    fn from_broken(refused: Refused) -> L;
}

#[diagnostic::do_not_recommend]
impl<E: From<Refused>> FromBroken<E> for E {
    fn from_broken(refused: Refused) -> E {
        refused.into()
    }
}

impl<E> FromBroken<Option<E>> for E {
    fn from_broken(_: Refused) -> Option<E> {
        None
    }
}

/// What is returned where the job could not be written down first.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no value for a job that the journal could not take",
    label = "`journal = required` needs `From<retry_runtime::Refused>` for the error",
    note = "write `impl From<retry_runtime::Refused> for {Self}`, or return `Result<T, retry_runtime::GaveUp<{Self}>>`",
    note = "with `journal` alone the job runs all the same, and a notice says so"
)]
pub trait FromUnjournalled<L> {
    fn from_unjournalled(refused: Refused) -> L;
}

#[diagnostic::do_not_recommend]
impl<E: From<Refused>> FromUnjournalled<E> for E {
    fn from_unjournalled(refused: Refused) -> E {
        refused.into()
    }
}

impl<E> FromUnjournalled<Option<E>> for E {
    fn from_unjournalled(_: Refused) -> Option<E> {
        None
    }
}
