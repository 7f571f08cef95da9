//! The states of a stored letter.

use std::fmt;

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $text:literal, owed: $owed:literal, closed: $closed:literal;)*) => {
        /// Where a stored letter stands. The text form is stable: the column `status` of the view `dead_letter` shows it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum LetterState {
            $($(#[$doc])* $name,)*
        }

        impl LetterState {
            /// Every state. Constraints, counts and retention are generated from it, so that a new state is forgotten
            /// nowhere.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable text form.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Whether somebody still has to look at it. Retention never touches an owed letter.
            pub const fn is_owed(self) -> bool {
                match self { $(Self::$name => $owed,)* }
            }

            /// Whether it carries the time of its closing.
            pub const fn is_closed(self) -> bool {
                match self { $(Self::$name => $closed,)* }
            }
        }
    };
}

states! {
    /// Waits for a replay. Left by a claim or by an operator.
    Parked = "parked", owed: true, closed: false;
    /// A replay runs under a lease. Left by its result, its release, or the end of its lease.
    Replaying = "replaying", owed: true, closed: false;
    /// A replay succeeded. A new failure of the same job opens it again.
    Recovered = "recovered", owed: false, closed: true;
    /// Given up on purpose, or gone for good. A new failure of the same job opens it again.
    Discarded = "discarded", owed: false, closed: true;
    /// Replayed, or crashed, too often. Only an operator takes it out of this state:
    /// [`restore`](crate::dead_letter::DeadLetterStore::restore).
    Abandoned = "abandoned", owed: true, closed: true;
}

impl LetterState {
    /// The state of a stable text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for LetterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D10
    #[test]
    fn owed_is_parked_replaying_and_abandoned() {
        let owed: Vec<_> = LetterState::ALL.iter().filter(|s| s.is_owed()).map(|s| s.as_str()).collect();
        assert_eq!(owed, ["parked", "replaying", "abandoned"]);
    }

    #[test]
    fn text_forms_round_trip() {
        for state in LetterState::ALL {
            assert_eq!(LetterState::parse(state.as_str()), Some(*state));
        }
        assert_eq!(LetterState::parse("lost"), None);
    }
}
