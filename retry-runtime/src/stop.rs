//! Why a call ended.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a call ended. The text form is stable: letters, events and metrics carry it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum StopReason {
            $($(#[$doc])* $name,)*
        }

        impl StopReason {
            /// Every reason, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable text form.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

reasons! {
    /// An attempt, or the fallback, succeeded.
    Succeeded = "succeeded",
    /// The failure will come again.
    Permanent = "permanent",
    /// A final answer: there is nothing to fetch or do.
    Gone = "gone",
    /// The failure is unknown, and unknown failures stop.
    Unknown = "unknown",
    /// All attempts were used.
    Exhausted = "exhausted",
    /// The deadline would pass during the wait, or had passed.
    Deadline = "deadline",
    /// The server asked for a longer wait than `max_retry_after`.
    HintTooLong = "hint_too_long",
    /// The retry budget was empty.
    BudgetDenied = "budget_denied",
    /// The circuit breaker was open.
    BreakerOpen = "breaker_open",
    /// The classifier panicked.
    ClassifierFailed = "classifier_failed",
    /// The `cancel` future completed.
    Cancelled = "cancelled",
    /// The call's future was dropped.
    Dropped = "dropped",
    /// The body panicked.
    Panicked = "panicked",
    /// The attempt ledger refused the call.
    LedgerRefused = "ledger_refused",
    /// The work may have been done, and it is not idempotent.
    OutcomeUnknown = "outcome_unknown",
    /// The process died.
    Crashed = "crashed",
}

impl StopReason {
    /// The reason of a stable text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == text)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
