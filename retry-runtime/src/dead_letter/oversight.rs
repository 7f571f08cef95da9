//! For whoever watches a store: what was looked at and what was refused is written down too.

use std::sync::Arc;

use crate::dead_letter::{Actor, BoxFuture};
use crate::error::StoreError;

/// What somebody did that changed no letter, and is written down all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Incident {
    /// A payload was shown to somebody.
    PayloadShown,
    /// Somebody wanted to change something and may not.
    Refused,
    /// Somebody came in.
    LoggedIn,
    /// Somebody was not let in.
    LoginRefused,
}

impl Incident {
    /// Every incident.
    pub const ALL: &'static [Self] = &[Self::PayloadShown, Self::Refused, Self::LoggedIn, Self::LoginRefused];

    /// The word of the [event](crate::dead_letter::EventRecord::what).
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PayloadShown => "payload_shown",
            Self::Refused => "refused",
            Self::LoggedIn => "logged_in",
            Self::LoginRefused => "login_refused",
        }
    }
}

/// A store that keeps an eye on those who look after it.
///
/// # Errors
/// [`StoreError`], by kind: `ReadOnly` for a store that was opened for reading.
pub trait Oversight: Send + Sync {
    /// Writes one event into the audit. No letter is changed. A letter that is not there is no error: the event is then one
    /// of the store. `detail` is kept as a reason is: at most
    /// [`MAX_ACTOR_REASON`](crate::dead_letter::MAX_ACTOR_REASON) bytes of it.
    fn record(
        &self,
        incident: Incident,
        letter_id: Option<String>,
        detail: String,
        actor: Actor,
    ) -> BoxFuture<'_, Result<(), StoreError>>;
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<S: Oversight + ?Sized> Oversight for $type {
            fn record(&self, incident: Incident, letter_id: Option<String>, detail: String, actor: Actor) -> BoxFuture<'_, Result<(), StoreError>> {
                (**self).record(incident, letter_id, detail, actor)
            }
        }
    )*};
}

through!(&S, Arc<S>, Box<S>);

// The trait stays object-safe.
const _: fn(&dyn Oversight) = |_| {};
