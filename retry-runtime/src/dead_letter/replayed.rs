//! What a call asks of the replay it may run in. Without stores nothing is replayed.

use std::borrow::Cow;

use crate::dead_letter::{DeadLetter, DeadLetterSink, Ticket};
#[cfg(feature = "stores")]
use crate::dead_letter::{ReplayScope, hand_over};

/// Whether this code runs in a replay of that very job.
#[cfg(feature = "stores")]
pub(crate) fn is_replayed<'j>(kind: &str, job_id: impl FnOnce() -> Option<Cow<'j, str>>) -> bool {
    ReplayScope::current().is_some_and(|scope| scope.covers(kind, job_id().as_deref()))
}

#[cfg(not(feature = "stores"))]
pub(crate) fn is_replayed<'j>(_: &str, _: impl FnOnce() -> Option<Cow<'j, str>>) -> bool {
    false
}

/// Hands a letter to the replay that runs its job, if one does, else to the sink.
#[cfg(feature = "stores")]
pub(crate) fn hand_over_or_submit<S: DeadLetterSink + ?Sized>(sink: &S, letter: DeadLetter) -> Ticket {
    hand_over(sink, letter)
}

#[cfg(not(feature = "stores"))]
pub(crate) fn hand_over_or_submit<S: DeadLetterSink + ?Sized>(sink: &S, letter: DeadLetter) -> Ticket {
    sink.submit(letter)
}
