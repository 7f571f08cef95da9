//! The macros of `retry-runtime`; use them through it.

mod classify;
mod diag;
mod names;
mod retry;
mod slot;
mod value;

use proc_macro::TokenStream;

/// Retries a function.
#[proc_macro_attribute]
pub fn retry(options: TokenStream, item: TokenStream) -> TokenStream {
    retry::attribute(options.into(), item.into()).into()
}

/// The loop of `#[retry]` as an expression.
#[proc_macro]
pub fn retrying(input: TokenStream) -> TokenStream {
    retry::inline(input.into()).into()
}

/// Writes `retry_runtime::Classify` for an enum or a struct: every variant says what a failure of its kind means.
///
/// ```
/// use std::time::Duration;
///
/// use retry_runtime::{Classify, Disposition, Verdict};
///
/// #[derive(Classify)]
/// enum FetchError {
///     #[classify(retryable, class = "connection")]
///     Reset(std::io::Error),
///     #[classify(permanent)]
///     BadUrl,
///     #[classify(retryable)]
///     RateLimit {
///         #[classify(retry_after)]
///         wait: Option<Duration>,
///     },
///     #[classify(status = status, message = body)]
///     Server { status: u16, body: String },
///     #[classify(transparent)]
///     Store(Box<StoreError>),
/// }
///
/// #[derive(Classify)]
/// #[classify(permanent)]
/// struct StoreError;
///
/// let limited = FetchError::RateLimit { wait: Some(Duration::from_secs(7)) };
/// assert_eq!(limited.classify(), Verdict::retryable("rate_limit").retry_after(Duration::from_secs(7)));
///
/// let server = FetchError::Server { status: 503, body: "try later".into() }.classify();
/// assert_eq!((server.disposition, server.code), (Disposition::Retryable, Some(503)));
///
/// assert_eq!(FetchError::Store(Box::new(StoreError)).classify(), Verdict::permanent("store_error"));
/// ```
///
/// # Decisions
///
/// A variant, or a struct, has exactly one of these. One without any is a compile error that lists all such variants,
/// unless the enum has a default. Nothing is ever retried because nobody said no.
///
/// | `#[classify(..)]` | meaning |
/// |---|---|
/// | `retryable` | may pass when tried again |
/// | `permanent` | will fail again |
/// | `gone` | a final answer: no retry, no fallback, no dead letter |
/// | `unknown` | nobody knows: the `unknown` option of `#[retry]` decides |
/// | `transparent`, `transparent = field` | the verdict of the value inside, through `Box`, `Arc`, `Rc` and `&`; the field must be named where there are several |
/// | `status = field`, `message = field` | one or both: decided by rules about a status and a text |
/// | `with = path` | decided by a function `fn(&Self) -> Verdict` |
///
/// # Details
///
/// | `#[classify(..)]` | beside | meaning |
/// |---|---|---|
/// | `class = "name"` | a disposition, `status`, `message` | the failure class: letters, digits, `_`, `-`, `.`; default: the variant's name in `snake_case`, or the class that the rules give |
/// | `retry_after = field` | a disposition, `status`, `message` | how long the server asked to wait: a `Duration`, whole seconds, or an `Option` of one |
/// | `outcome_unknown` | a disposition, `status`, `message` | the work may have been done all the same |
/// | `rules = PATH` | `status`, `message` | the `StatusRules` to decide by, a constant or a static; default: `StatusRules::HTTP` |
///
/// A field is given by its name or number, or by the word on the field itself: `#[classify(status)]`, `message`,
/// `retry_after` or `transparent`. What a field may be: see the traits `StatusField`, `MessageField` and
/// `RetryAfterField` in `retry_runtime::classify`, which can be implemented for types of your own.
///
/// A status becomes the verdict's code. With rules that know neither the status nor a word of the message, the failure is
/// unknown. For a fixed disposition that carries a code, write a function:
///
/// ```
/// use retry_runtime::{Classify, Verdict};
///
/// #[derive(Classify)]
/// #[classify(with = Self::verdict)]
/// struct Refused {
///     status: u16,
/// }
///
/// impl Refused {
///     fn verdict(&self) -> Verdict {
///         Verdict::permanent("refused").code(i64::from(self.status))
///     }
/// }
///
/// assert_eq!(Refused { status: 451 }.classify().code, Some(451));
/// ```
///
/// # On the type
///
/// | `#[classify(..)]` | on | meaning |
/// |---|---|---|
/// | `default = permanent` | an enum | the disposition, any of the four, of variants that have no decision |
/// | `crate = ::path` | an enum or struct | where generated code finds the runtime; default `::retry_runtime` |
///
/// # Generics
///
/// A bound is added only where a field is asked and its type depends on a parameter: `#[classify(transparent)] Inner(T)`
/// needs `T: Classify`, and a payload that is not asked needs nothing. Recursion through `Self`, or the type's own name,
/// needs no bound. Two *generic* types that ask each other are beyond what bounds can say; implement one of the two by
/// hand.
///
/// # Text
///
/// `Classify::describe` gives the text of `Display` where the type has it, else that of `Debug`, else none. For a generic
/// type only an implementation counts that holds for every parameter the type admits.
#[proc_macro_derive(Classify, attributes(classify))]
pub fn classify(item: TokenStream) -> TokenStream {
    classify::derive(item.into()).into()
}
