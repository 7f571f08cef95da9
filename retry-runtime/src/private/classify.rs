//! Helpers of `#[derive(Classify)]`.

use std::fmt::{Debug, Display};
use std::ops::Deref;
use std::time::Duration;

pub use crate::__private::class_names::{AnyClass, ClassNames, Found, Known, Own, class_is_known};
use crate::classify::StatusRules;
use crate::verdict::{Disposition, Verdict};

/// The verdict of rules about a status and a message. Where they know neither a status nor a word, the class is the name of
/// the variant: it says more than `unknown`.
pub fn by_rules(rules: &StatusRules, status: Option<i64>, message: &str, name: &'static str) -> Verdict {
    let verdict = rules.verdict(status, message);
    let unnamed = verdict.code.is_none() && verdict.disposition == Disposition::Unknown;
    if unnamed { with_class(verdict, name) } else { verdict }
}

/// A verdict under a class of the user's own.
pub const fn with_class(mut verdict: Verdict, class: &'static str) -> Verdict {
    verdict.class = class;
    verdict
}

/// A verdict with the wait that the server asked for, if it did.
pub const fn with_hint(mut verdict: Verdict, hint: Option<Duration>) -> Verdict {
    if hint.is_some() {
        verdict.retry_after = hint;
    }
    verdict
}

/// Finds a text for a value without asking anything of its type: by `Display`, else by `Debug`, else none.
///
/// Method lookup does the choosing. It looks at this type first, whose method exists only for a `Display` type, then
/// follows `Deref` to the next best one. All three are inherent methods, so nothing has to be imported where the code is
/// generated, and no other trait's method comes between.
#[derive(Debug)]
pub struct Probe<'a, T: ?Sized>(ProbeDebug<'a, T>);

/// The second choice of [`Probe`].
#[derive(Debug)]
pub struct ProbeDebug<'a, T: ?Sized>(ProbeNone<'a, T>);

/// The last choice of [`Probe`].
pub struct ProbeNone<'a, T: ?Sized>(&'a T);

impl<T: ?Sized> Debug for ProbeNone<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Probe")
    }
}

impl<'a, T: ?Sized> Probe<'a, T> {
    /// A probe of a value.
    pub const fn new(value: &'a T) -> Self {
        Self(ProbeDebug(ProbeNone(value)))
    }
}

impl<T: Display + ?Sized> Probe<'_, T> {
    /// The text of `Display`.
    pub fn __retry_describe(&self) -> Option<String> {
        Some(self.0.0.0.to_string())
    }
}

impl<T: Debug + ?Sized> ProbeDebug<'_, T> {
    /// The text of `Debug`.
    pub fn __retry_describe(&self) -> Option<String> {
        Some(format!("{:?}", self.0.0))
    }
}

impl<T: ?Sized> ProbeNone<'_, T> {
    /// No text.
    pub const fn __retry_describe(&self) -> Option<String> {
        None
    }
}

impl<'a, T: ?Sized> Deref for Probe<'a, T> {
    type Target = ProbeDebug<'a, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a, T: ?Sized> Deref for ProbeDebug<'a, T> {
    type Target = ProbeNone<'a, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Neither;

    #[derive(Debug)]
    struct OnlyDebug;

    #[derive(Debug)]
    struct Both<T>(T);

    impl<T: Display> Display for Both<T> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "both {}", self.0)
        }
    }

    /// Inside a generic function nothing is known of `T`, and nothing is asked.
    fn generic<T>(value: &Both<T>) -> Option<String> {
        Probe::new(value).__retry_describe()
    }

    #[test]
    fn the_best_text_there_is() {
        assert_eq!(Probe::new(&Neither).__retry_describe(), None);
        assert_eq!(Probe::new(&OnlyDebug).__retry_describe().as_deref(), Some("OnlyDebug"));
        assert_eq!(Probe::new(&Both(1)).__retry_describe().as_deref(), Some("both 1"));
        assert_eq!(Probe::new(&Both(OnlyDebug)).__retry_describe().as_deref(), Some("Both(OnlyDebug)"));
        assert_eq!(Probe::new("text").__retry_describe().as_deref(), Some("text"));
        assert_eq!(generic(&Both(1)), None);
    }
}
