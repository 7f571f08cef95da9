//! The text of an error of any type: `Display` where it is there, else `Debug`, else what `Classify` says, else none.
//!
//! Stable Rust has no specialisation; inherent methods found by autoderef do it for types known where the macro stands,
//! without a trait in the user's scope and without a bound on the user's type.

#![allow(clippy::unused_self)] // method lookup is the point

use std::fmt::{self, Debug, Display, Write as _};
use std::marker::PhantomData;
use std::ops::Deref;

use crate::classify::Classify;

/// Starts the search for a way to make a text of `E`.
#[derive(Debug)]
pub struct TextOf<E: ?Sized>(PhantomData<fn(&E)>, ByDebug<E>);
#[derive(Debug)]
pub struct ByDebug<E: ?Sized>(PhantomData<fn(&E)>, ByClassify<E>);
#[derive(Debug)]
pub struct ByClassify<E: ?Sized>(PhantomData<fn(&E)>, Nothing<E>);
#[derive(Debug)]
pub struct Nothing<E: ?Sized>(PhantomData<fn(&E)>);

/// How the text of an `E` is made.
pub(crate) type MakeText<E> = fn(&E) -> Option<String>;

/// As `to_string`, with room for most messages from the start: one allocation, not one for each doubling.
#[inline(never)]
fn written(text: fmt::Arguments<'_>) -> String {
    let mut written = String::with_capacity(64);
    if written.write_fmt(text).is_err() {
        written.push_str("<the error's text ends here: its formatting failed>");
    }
    written
}

/// The start of the search, for the type of `error`.
#[inline]
pub const fn text_of<E: ?Sized>(_error: &E) -> TextOf<E> {
    TextOf(PhantomData, ByDebug(PhantomData, ByClassify(PhantomData, Nothing(PhantomData))))
}

impl<E: ?Sized> Deref for TextOf<E> {
    type Target = ByDebug<E>;
    fn deref(&self) -> &ByDebug<E> {
        &self.1
    }
}

impl<E: ?Sized> Deref for ByDebug<E> {
    type Target = ByClassify<E>;
    fn deref(&self) -> &ByClassify<E> {
        &self.1
    }
}

impl<E: ?Sized> Deref for ByClassify<E> {
    type Target = Nothing<E>;
    fn deref(&self) -> &Nothing<E> {
        &self.1
    }
}

impl<E: Display + ?Sized> TextOf<E> {
    pub fn __retry_text(&self) -> MakeText<E> {
        |error| Some(written(format_args!("{error}")))
    }
}

impl<E: Debug + ?Sized> ByDebug<E> {
    pub fn __retry_text(&self) -> MakeText<E> {
        |error| Some(written(format_args!("{error:?}")))
    }
}

impl<E: Classify + ?Sized> ByClassify<E> {
    pub fn __retry_text(&self) -> MakeText<E> {
        Classify::describe
    }
}

impl<E: ?Sized> Nothing<E> {
    pub fn __retry_text(&self) -> MakeText<E> {
        |_| None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    struct Bare;
    struct Classified;
    impl Classify for Classified {
        fn classify(&self) -> Verdict {
            Verdict::permanent("x")
        }
        fn describe(&self) -> Option<String> {
            Some("described".to_owned())
        }
    }
    #[derive(Debug)]
    struct Debugged;

    // where the standard library panics: an error about an error helps nobody
    #[test]
    fn a_text_that_fails_half_way_says_so() {
        struct Broken;
        impl Display for Broken {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("half ")?;
                Err(fmt::Error)
            }
        }
        let text = text_of(&Broken).__retry_text()(&Broken);
        assert_eq!(text.as_deref(), Some("half <the error's text ends here: its formatting failed>"));
    }

    fn generic<E: Classify>(error: &E) -> Option<String> {
        text_of(error).__retry_text()(error)
    }

    #[test]
    fn the_best_text_is_found() {
        assert_eq!(text_of("shown").__retry_text()("shown").as_deref(), Some("shown"));
        assert_eq!(text_of(&Debugged).__retry_text()(&Debugged).as_deref(), Some("Debugged"));
        assert_eq!(text_of(&Classified).__retry_text()(&Classified).as_deref(), Some("described"));
        assert_eq!(text_of(&Bare).__retry_text()(&Bare), None);
        assert_eq!(generic(&Classified).as_deref(), Some("described"));
    }
}
