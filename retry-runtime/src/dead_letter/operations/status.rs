//! Where an operation stands, and who may move it.

use std::fmt;

use crate::error::{StoreError, StoreErrorKind};

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $text:literal, over: $over:literal;)*) => {
        /// Where an operation stands. The text form is stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum OperationStatus {
            $($(#[$doc])* $name,)*
        }

        impl OperationStatus {
            /// Every status.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable text form.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Whether nothing moves it any more.
            pub const fn is_over(self) -> bool {
                match self { $(Self::$name => $over,)* }
            }
        }
    };
}

statuses! {
    /// Waits for a runner.
    Pending = "pending", over: false;
    /// A runner is at it, or was when it died: its lease says.
    Running = "running", over: false;
    /// Stopped, by an operator or by what the note says. [`Steer::Resume`] lets it go on.
    Paused = "paused", over: false;
    /// Every member has its outcome.
    Done = "done", over: true;
    /// Called off. Members that were not reached stay `pending`, and are no longer meant.
    Cancelled = "cancelled", over: true;
    /// It cannot go on as it is; the note says why. [`Steer::Resume`] tries again.
    Failed = "failed", over: false;
}

impl OperationStatus {
    /// The status of a stable text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for OperationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an operator does with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Steer {
    /// No further member is begun; those under way end as usual.
    Pause,
    /// It may be taken by a runner again. The failure ratio and the ramp begin anew.
    Resume,
    /// It is over; those under way end as usual.
    Cancel,
}

impl Steer {
    /// The stable text form: `pause`, `resume` or `cancel`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
        }
    }

    /// Where it leads from a status.
    ///
    /// # Errors
    /// `Conflict` where it leads nowhere.
    pub fn from(self, status: OperationStatus) -> Result<OperationStatus, StoreError> {
        use OperationStatus::{Cancelled, Done, Failed, Paused, Pending, Running};
        match (self, status) {
            (Self::Pause, Pending | Running) => Ok(Paused),
            (Self::Resume, Paused | Failed) => Ok(Pending),
            (Self::Cancel, Pending | Running | Paused | Failed) => Ok(Cancelled),
            (Self::Pause, Paused | Done | Cancelled | Failed)
            | (Self::Resume, Pending | Running | Done | Cancelled)
            | (Self::Cancel, Done | Cancelled) => {
                let message = format!("the operation is {status}: it cannot be {}", self.done());
                Err(StoreError::new(StoreErrorKind::Conflict, message))
            }
        }
    }

    const fn done(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Cancel => "cancelled",
        }
    }
}

/// How a runner leaves an operation that is not at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leave {
    /// An orderly shutdown: the next runner goes on at once.
    Released,
    /// Something has to be seen to first; the note says what.
    Paused(String),
    /// The runner cannot go on; the note says why.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    // D21
    #[test]
    fn each_steer_leads_where_the_table_says() {
        use OperationStatus::{Cancelled, Done, Failed, Paused, Pending, Running};
        let table = [
            (Pending, [Some(Paused), None, Some(Cancelled)]),
            (Running, [Some(Paused), None, Some(Cancelled)]),
            (Paused, [None, Some(Pending), Some(Cancelled)]),
            (Done, [None, None, None]),
            (Cancelled, [None, None, None]),
            (Failed, [None, Some(Pending), Some(Cancelled)]),
        ];
        assert_eq!(table.len(), OperationStatus::ALL.len());
        for (status, wanted) in table {
            let found = [Steer::Pause, Steer::Resume, Steer::Cancel].map(|steer| steer.from(status).ok());
            assert_eq!(found, wanted, "{status}");
            assert_eq!(status.is_over(), wanted == [None, None, None], "{status}");
        }
        let refused = Steer::Resume.from(Done).map_err(|error| error.to_string());
        assert_eq!(refused, Err("the operation is done: it cannot be resumed".to_owned()));
    }

    #[test]
    fn texts_lead_back() {
        for status in OperationStatus::ALL {
            assert_eq!(OperationStatus::parse(status.as_str()), Some(*status));
        }
        assert_eq!(OperationStatus::parse("Running"), None);
    }
}
