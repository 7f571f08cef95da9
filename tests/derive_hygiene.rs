//! Generated code means the same wherever it stands, whatever the user's names mean there.
#![deny(warnings)]
// names and signatures that are here to clash
#![allow(clippy::enum_variant_names, clippy::unused_self, clippy::unnecessary_wraps)]

use retry_runtime::{Classify as _, Disposition};

/// Everything that a prelude offers, gone; and names of ours that mean something else.
mod hostile {
    #![allow(dead_code, non_camel_case_types, non_upper_case_globals, unused_macros, unused_imports)]

    pub(super) mod core {}
    pub(super) mod std {}
    pub(super) mod alloc {}
    pub(super) mod retry_runtime {}
    pub(super) mod __private {}
    pub(super) mod classify {}

    pub(super) struct Option;
    pub(super) struct Result;
    pub(super) struct String;
    pub(super) struct Box;
    pub(super) struct Some;
    pub(super) struct None;
    pub(super) struct Ok;
    pub(super) struct Err;
    pub(super) struct Verdict;
    pub(super) struct Disposition;
    pub(super) struct Probe;
    pub(super) struct StatusRules;
    pub(super) struct u64;
    pub(super) struct str;
    pub(super) trait Classify {}
    pub(super) trait StatusField {}
    pub(super) trait Sized {}
    pub(super) trait Fn {}

    // names that a careless derive would bind, and then compare with instead
    pub(super) const inner: u8 = 1;
    pub(super) const status: u8 = 1;
    pub(super) const message: u8 = 1;
    pub(super) const text: u8 = 1;
    pub(super) const code: u8 = 1;
    pub(super) const after: u8 = 1;
    pub(super) const source: u8 = 1;
    pub(super) const field0: u8 = 1;
    pub(super) const __self: u8 = 1;
    pub(super) static retry_after: u8 = 1;
    pub(super) static verdict: u8 = 1;
    pub(super) static rules: u8 = 1;
    pub(super) static f: u8 = 1;

    macro_rules! matches {
        ($($any:tt)*) => {
            ::core::compile_error!("shadowed")
        };
    }
    macro_rules! format {
        ($($any:tt)*) => {
            ::core::compile_error!("shadowed")
        };
    }
    macro_rules! panic {
        ($($any:tt)*) => {
            ::core::compile_error!("shadowed")
        };
    }
    macro_rules! unreachable {
        ($($any:tt)*) => {
            ::core::compile_error!("shadowed")
        };
    }

    #[derive(::retry_runtime::Classify)]
    pub(super) enum Error {
        #[classify(retryable)]
        Error,
        #[classify(transparent)]
        Self_ { inner: Inner },
        #[classify(message = text, retry_after = after)]
        #[classify(class = "named")]
        Option {
            #[classify(status)]
            code: u16,
            text: &'static ::core::primitive::str,
            after: ::core::option::Option<::core::primitive::u64>,
        },
        #[classify(with = judge)]
        Verdict,
    }

    #[derive(::retry_runtime::Classify)]
    #[classify(gone)]
    pub(super) struct Inner;

    fn judge(_: &Error) -> ::retry_runtime::Verdict {
        ::retry_runtime::Verdict::permanent("judged")
    }
}

#[test]
fn names_of_the_users_do_not_matter() {
    use hostile::{Error, Inner};
    assert_eq!(Error::Error.classify().disposition, Disposition::Retryable);
    assert_eq!(Error::Self_ { inner: Inner }.classify().disposition, Disposition::Gone);
    let status = Error::Option { code: 503, text: "", after: Some(1) }.classify();
    assert_eq!((status.code, status.class), (Some(503), "named"));
    assert_eq!(Error::Verdict.classify().class, "judged");
}

mod bare {
    #![no_implicit_prelude]

    #[derive(::retry_runtime::Classify)]
    #[classify(default = unknown)]
    pub(super) enum Error<'a, T> {
        Silent,
        #[classify(transparent)]
        Inner(T),
        #[classify(status = 0, message = 1, retry_after = 2)]
        Status(u16, &'a str, ::core::option::Option<u64>),
        #[classify(with = judge)]
        With,
    }

    #[derive(::retry_runtime::Classify)]
    #[classify(retryable)]
    pub(super) struct Inner(pub(super) u8);

    fn judge<T>(_: &Error<'_, T>) -> ::retry_runtime::Verdict {
        ::retry_runtime::Verdict::gone("judged")
    }
}

#[test]
fn no_prelude_is_needed() {
    type Error = bare::Error<'static, bare::Inner>;
    assert_eq!(Error::Silent.classify().disposition, Disposition::Unknown);
    assert_eq!(Error::Inner(bare::Inner(1)).classify().disposition, Disposition::Retryable);
    assert_eq!(Error::Status(404, "", Some(1)).classify().code, Some(404));
    assert_eq!(Error::With.classify().class, "judged");
    let Error::Inner(bare::Inner(byte)) = Error::Inner(bare::Inner(7)) else { return };
    assert_eq!(byte, 7);
}

/// The runtime under another name, as a crate that re-exports it has it.
mod facade {
    pub(crate) mod deep {
        pub(crate) use retry_runtime as renamed;
    }
}

mod renamed {
    // proves that nothing but the given path is used
    #[allow(dead_code)]
    mod retry_runtime {}

    #[derive(crate::facade::deep::renamed::Classify)]
    #[classify(crate = crate::facade::deep::renamed, default = permanent)]
    pub(crate) enum Error {
        #[classify(status = 0, message = 1, retry_after = 2)]
        All(u16, String, u64),
        #[classify(transparent)]
        Inner(Inner),
        Silent,
    }

    #[derive(crate::facade::deep::renamed::Classify)]
    #[classify(crate = crate::facade::deep::renamed)]
    #[classify(gone)]
    pub(crate) struct Inner;
}

#[test]
fn the_runtime_may_be_reached_by_another_path() {
    assert_eq!(renamed::Error::All(503, String::new(), 1).classify().disposition, Disposition::Retryable);
    assert_eq!(renamed::Error::Inner(renamed::Inner).classify().disposition, Disposition::Gone);
    assert_eq!(renamed::Error::Silent.classify().disposition, Disposition::Permanent);
}

/// A stand-in for the runtime: generated code must use it, and must not touch the real one.
mod fake {
    pub(crate) trait Classify {
        fn classify(&self) -> Verdict;
        fn describe(&self) -> Option<String>;
    }

    pub(crate) struct Verdict(pub(crate) &'static str);

    pub(crate) enum Disposition {
        Permanent,
    }

    impl Verdict {
        pub(crate) fn new(_: Disposition, class: &'static str) -> Self {
            Self(class)
        }
    }

    pub(crate) mod __private {
        pub(crate) use std::option::Option;
        pub(crate) use std::string::String;

        pub(crate) mod classify {
            pub(crate) struct Own(pub(crate) &'static [&'static str]);

            impl Own {
                pub(crate) const fn closed(_: &'static str, names: &'static [&'static str]) -> Self {
                    Self(names)
                }
            }

            pub(crate) trait ClassNames {
                const OWN: Own;
            }

            pub(crate) struct Probe;

            impl Probe {
                pub(crate) fn new<T>(_: &T) -> Self {
                    Self
                }

                pub(crate) fn __retry_describe(&self) -> Option<String> {
                    Some("fake".into())
                }
            }
        }
    }
}

#[derive(retry_runtime::Classify)]
#[classify(crate = crate::fake, permanent)]
struct Faked;

// were the real trait implemented as well, this would be a second implementation
impl retry_runtime::Classify for Faked {
    fn classify(&self) -> retry_runtime::Verdict {
        retry_runtime::Verdict::gone("by hand")
    }
}

#[test]
fn nothing_but_the_given_crate_is_used() {
    assert_eq!(fake::Classify::classify(&Faked).0, "faked");
    assert_eq!(fake::Classify::describe(&Faked).as_deref(), Some("fake"));
    assert_eq!(<Faked as fake::__private::classify::ClassNames>::OWN.0, ["faked"]);
    assert_eq!(retry_runtime::Classify::classify(&Faked).class, "by hand");
}

/// Methods and traits with our names on everything.
mod methods {
    #![allow(dead_code)]

    pub(super) trait Loud {
        fn classify(&self) -> u8 {
            0
        }
        fn status(&self) -> u8 {
            0
        }
        fn message(&self) -> u8 {
            0
        }
        fn retry_after(&self) -> u8 {
            0
        }
        fn outcome_unknown(&self) -> u8 {
            0
        }
        fn verdict(&self) -> u8 {
            0
        }
    }

    impl<T: ?Sized> Loud for T {}

    #[derive(retry_runtime::Classify)]
    #[classify(status = code, message = text, retry_after = wait, outcome_unknown)]
    pub(super) struct Error {
        pub(super) code: u16,
        pub(super) text: String,
        pub(super) wait: Option<u64>,
    }

    impl Error {
        pub(super) fn classify(&self) -> bool {
            false
        }
        pub(super) fn describe() -> bool {
            false
        }
        pub(super) fn new() -> Self {
            Self { code: 429, text: String::new(), wait: Some(2) }
        }
    }
}

#[test]
fn methods_of_the_users_are_not_called() {
    let error = methods::Error::new();
    let verdict = retry_runtime::Classify::classify(&error);
    assert_eq!((verdict.code, verdict.outcome_unknown), (Some(429), true));
    assert!(!error.classify() && !methods::Error::describe());
    assert_eq!(methods::Loud::status(&error), 0);
}

#[derive(retry_runtime::Classify)]
#[allow(non_camel_case_types, dead_code)]
enum Parameters<'classify, '__retry, 'static_, Classify, Verdict, Option, String, Self_, __T, const N: usize> {
    #[classify(retryable)]
    A(&'classify Classify, &'__retry Verdict, &'static_ Option),
    #[classify(transparent)]
    B(Self_),
    #[classify(permanent)]
    C(String, [__T; N]),
}

#[test]
fn generic_parameters_may_have_any_name() {
    let error: Parameters<'_, '_, '_, u8, u8, u8, u8, hostile::Inner, u8, 3> = Parameters::B(hostile::Inner);
    assert_eq!(error.classify().disposition, Disposition::Gone);
}
