//! The derive neither raises warnings of its own nor hides the user's. Clippy sees the same file in CI.
#![deny(warnings)]
#![deny(
    absolute_paths_not_starting_with_crate,
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    future_incompatible,
    keyword_idents_2024,
    let_underscore,
    let_underscore_drop,
    macro_use_extern_crate,
    meta_variable_misuse,
    missing_copy_implementations,
    missing_debug_implementations,
    missing_docs,
    mismatched_lifetime_syntaxes,
    non_ascii_idents,
    private_bounds,
    private_interfaces,
    redundant_imports,
    redundant_lifetimes,
    rust_2018_idioms,
    rust_2021_compatibility,
    single_use_lifetimes,
    trivial_bounds,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    unnameable_types,
    unreachable_patterns,
    unreachable_pub,
    unused_extern_crates,
    unused_import_braces,
    unused_lifetimes,
    unused_macro_rules,
    unused_qualifications,
    unused_results,
    variant_size_differences
)]
#![forbid(unsafe_code, deprecated, unused_variables, non_local_definitions, unconditional_recursion)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::default_numeric_fallback,
    clippy::disallowed_script_idents,
    clippy::exhaustive_structs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::let_underscore_must_use,
    clippy::let_underscore_untyped,
    clippy::match_wildcard_for_single_variants,
    clippy::missing_inline_in_public_items,
    clippy::missing_trait_methods,
    clippy::panic,
    clippy::pattern_type_mismatch,
    clippy::ref_patterns,
    clippy::rest_pat_in_fully_bound_structs,
    clippy::same_name_method,
    clippy::shadow_reuse,
    clippy::shadow_same,
    clippy::shadow_unrelated,
    clippy::single_char_lifetime_names,
    clippy::unneeded_field_pattern,
    clippy::unreachable,
    clippy::unwrap_in_result,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm
)]
#![allow(clippy::redundant_pub_crate)] // contradicts `unreachable_pub`
#![allow(dead_code)] // not what is asked here

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use retry_runtime::{Classify, Disposition, StatusRules, Verdict};

/// Rules of this test.
pub(crate) const RULES: StatusRules = StatusRules::new().retryable(&[503]);

/// Every kind of variant, in an enum with lifetimes, types and constants.
#[derive(Debug, Classify)]
#[classify(default = permanent)]
#[non_exhaustive]
pub(crate) enum Everything<'text, 'other: 'text, T, U, const N: usize>
where
    T: fmt::Debug,
    U: fmt::Debug,
{
    /// Nothing said.
    Plain,
    /// A word.
    #[classify(retryable, outcome_unknown)]
    Busy,
    /// The same arm once more.
    #[classify(retryable, outcome_unknown, class = "busy")]
    Busier,
    /// All of a status.
    #[classify(status = code, message = text, retry_after = after, rules = RULES, class = "api")]
    Status {
        /// the status
        code: u16,
        /// the text
        text: &'text str,
        /// the hint
        after: Option<Duration>,
        /// not asked
        other: &'other [u8; N],
    },
    /// A field that is a parameter.
    #[classify(transparent)]
    Inner(T),
    /// One field of two.
    Second(u8, #[classify(transparent)] Box<U>),
    /// A function.
    #[classify(with = judge)]
    With(u8),
    /// One that cannot be.
    #[classify(transparent)]
    Never(Infallible),
    /// Nor can this.
    #[classify(retryable)]
    NeverEither(Infallible),
}

const fn judge<T: fmt::Debug, U: fmt::Debug, const N: usize>(_error: &Everything<'_, '_, T, U, N>) -> Verdict {
    Verdict::gone("judged")
}

/// One lifetime, used once.
#[derive(Clone, Copy, Debug, Classify)]
#[classify(status = code, crate = ::retry_runtime)]
pub(crate) struct Short<'text> {
    /// the status
    code: i32,
    /// not asked
    #[allow(dead_code)]
    text: &'text str,
}

/// Of no value.
#[derive(Clone, Copy, Debug, Classify)]
pub(crate) enum Nothing {}

/// One variant only.
#[derive(Clone, Copy, Debug, Classify)]
pub(crate) enum Single {
    /// it
    #[classify(gone)]
    It,
}

mod old {
    /// Out of use, and known as such to nobody else.
    #[derive(Clone, Copy, Debug, retry_runtime::Classify)]
    #[classify(permanent)]
    #[deprecated]
    pub(crate) struct Older;

    /// Some of it out of use.
    #[derive(Debug, retry_runtime::Classify)]
    #[deprecated(note = "use Everything")]
    pub(crate) enum Old {
        /// a variant
        #[deprecated]
        #[classify(retryable)]
        Variant,
        /// a field
        #[classify(retryable, retry_after = after)]
        Field {
            /// the hint
            #[deprecated]
            after: u32,
        },
    }
}

mod public {
    use retry_runtime::Classify;

    #[derive(Debug, Classify)]
    enum Hidden<T> {
        #[classify(transparent)]
        Inner(T),
        #[classify(permanent)]
        #[allow(dead_code)]
        Own,
    }

    /// Public around a private type.
    #[derive(Debug, Classify)]
    #[classify(transparent)]
    pub(crate) struct Shown<T>(Hidden<T>);

    /// One around a value.
    pub(crate) const fn shown<T>(inner: T) -> Shown<T> {
        Shown(Hidden::Inner(inner))
    }
}

#[test]
fn it_compiles_and_decides() {
    type Full = Everything<'static, 'static, Single, Single, 1>;
    let status = Full::Status { code: 503, text: "", after: Some(Duration::from_secs(9)), other: &[1] };
    let verdict = status.classify();
    assert_eq!(verdict, Verdict::retryable("api").code(503).retry_after(Duration::from_secs(9)));
    for (error, disposition) in [
        (Full::Plain, Disposition::Permanent),
        (Full::Busy, Disposition::Retryable),
        (Full::Busier, Disposition::Retryable),
        (Full::Inner(Single::It), Disposition::Gone),
        (Full::Second(1, Box::new(Single::It)), Disposition::Gone),
        (Full::With(1), Disposition::Gone),
    ] {
        assert_eq!(error.classify().disposition, disposition, "{error:?}");
    }
    assert_eq!(Short { code: 404, text: "" }.classify().code, Some(404));
    assert_eq!(public::shown(Single::It).classify().disposition, Disposition::Gone);
}
