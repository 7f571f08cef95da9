//! Forms of items around the derive: representations, other derives and their attributes, deprecated parts, globs.
#![deny(warnings)]
#![allow(clippy::wildcard_imports, clippy::non_minimal_cfg)] // names that clash, forms that are here to be read

use retry_runtime::{Classify, Disposition};

#[derive(Classify)]
#[classify(gone)]
struct Gone;

/// Attributes of other derives stand everywhere, parameters included.
#[derive(Debug, serde::Serialize, Classify, serde::Deserialize, Clone, PartialEq)]
#[serde(bound = "")]
#[classify(default = permanent)]
enum Mixed<#[cfg(all())] T: Clone + Default> {
    #[serde(rename = "coded")]
    #[classify(status = code)]
    Code {
        #[serde(default)]
        code: u16,
    },
    #[serde(skip)]
    Marker(std::marker::PhantomData<T>),
}

#[test]
fn attributes_of_other_derives_are_theirs() {
    assert_eq!(Mixed::<u8>::Code { code: 404 }.classify().code, Some(404));
    assert_eq!(Mixed::<u8>::Marker(std::marker::PhantomData).classify().class, "marker");
}

#[derive(Classify)]
#[classify(permanent)]
#[repr(C, packed)]
struct Packed {
    first: u8,
    second: u32,
}

#[derive(Classify)]
#[repr(u8)]
#[non_exhaustive]
enum Numbered {
    #[classify(gone)]
    First = 3,
    #[classify(permanent)]
    #[allow(dead_code)]
    Second = Self::FIVE,
    #[classify(retryable)]
    Third { byte: u8 } = 7,
}

impl Numbered {
    const FIVE: u8 = 5;
}

#[test]
fn representations_and_discriminants() {
    let packed = Packed { first: 1, second: 2 };
    assert_eq!((packed.first, { packed.second }), (1, 2));
    assert_eq!(packed.classify().disposition, Disposition::Permanent);
    assert_eq!(Numbered::First.classify().disposition, Disposition::Gone);
    let third = Numbered::Third { byte: 1 };
    assert_eq!(third.classify().class, "third");
    assert!(matches!(third, Numbered::Third { byte: 1 }));
}

trait Associated {
    type Error;
    type Busy;
    const DENIED: u8;
}

/// Variants called as the associated items of a trait that the type has.
#[derive(Classify)]
enum Ambiguous {
    #[classify(gone)]
    Error,
    #[classify(transparent)]
    Busy(Box<Self>),
}

impl Associated for Ambiguous {
    type Error = u8;
    type Busy = u8;
    const DENIED: u8 = 1;
}

#[test]
fn variants_are_not_associated_items() {
    let error = Ambiguous::Busy(Box::new(Ambiguous::Error));
    assert_eq!(error.classify().class, "error");
    let (error, busy): (<Ambiguous as Associated>::Error, <Ambiguous as Associated>::Busy) = (Ambiguous::DENIED, 1);
    assert_eq!(error, busy);
}

mod globs {
    #[allow(unused_imports)]
    use std::fmt::*;
    #[allow(unused_imports)]
    use std::io::*;
    #[allow(unused_imports)]
    use std::result::*;

    #[derive(retry_runtime::Classify)]
    #[classify(permanent)]
    pub(super) struct Failure(pub(super) u8);
}

#[test]
fn names_from_globs_do_not_matter() {
    let failure = globs::Failure(1);
    assert_eq!(failure.0, 1);
    assert_eq!(failure.classify().class, "failure");
}

mod private {
    mod rules {
        use retry_runtime::Verdict;

        pub(in crate::private) const fn judge(_: &super::Visible) -> Verdict {
            Verdict::gone("from_inside")
        }
    }

    /// Public, and judged by a function that only its module sees.
    #[derive(retry_runtime::Classify)]
    #[classify(with = rules::judge)]
    pub(crate) struct Visible;
}

#[test]
fn a_private_function_may_judge_a_public_type() {
    assert_eq!(private::Visible.classify().class, "from_inside");
}

mod old {
    #[deprecated]
    #[derive(Debug)]
    pub(super) struct Wrapper<T>(pub(super) T);

    #[allow(deprecated)]
    impl<T: retry_runtime::Classify> retry_runtime::Classify for Wrapper<T> {
        fn classify(&self) -> retry_runtime::Verdict {
            self.0.classify()
        }
    }

    #[deprecated]
    pub(super) type Code = u16;
}

/// The user allows the deprecated types where they are written; the derive repeats them, and needs no leave.
#[derive(Classify)]
enum Deprecated<T> {
    #[classify(transparent)]
    Wrapped(#[allow(deprecated)] old::Wrapper<T>),
    #[classify(status = 0)]
    Coded(#[allow(deprecated)] old::Code),
}

#[test]
fn deprecated_types_are_repeated_in_silence() {
    #[allow(deprecated)]
    let wrapped = Deprecated::Wrapped(old::Wrapper(Gone));
    assert_eq!(wrapped.classify().disposition, Disposition::Gone);
    assert_eq!(Deprecated::<Gone>::Coded(503).classify().code, Some(503));
}

#[derive(Classify)]
#[classify(transparent)]
struct Dynamic<'a>(&'a (dyn Classify + Send + Sync + 'a));

#[derive(Classify)]
#[classify(transparent = 1)]
struct Elided<F>(F, Box<dyn Classify>)
where
    F: for<'x> Fn(&'x str) -> &'x str;

#[test]
fn trait_objects_and_lifetimes_of_every_kind() {
    assert_eq!(Dynamic(&Gone).classify().class, "gone");
    let elided = Elided(|text| text, Box::new(Gone));
    assert_eq!((elided.0)("x"), "x");
    assert_eq!(elided.classify().class, "gone");
}
