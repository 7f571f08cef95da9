//! The settings of a function as a constant, or as what each call builds.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};

use super::args::mixed_at;
use super::expand::Target;
use super::model::{Backoff, Count, Jitter, Nested, Numbers, Unknown, bound_name};
use crate::value::{Known, duration_tokens, first_span};

/// What is known of a site whose every setting is a literal.
pub(super) struct Constant {
    /// `&At`
    pub(super) at: TokenStream,
    /// The operation's name and the number of retries, where an observer is told these two alone: as arguments they cost
    /// the compiler less than the constant that holds them.
    pub(super) facts: Option<TokenStream>,
}

/// A constant where every setting is a literal, else built by each call: what builds it, the site, and what is known of it
/// beforehand.
pub(super) fn site(
    target: &Target<'_>,
    span: Span,
    krate: &TokenStream,
    private: &TokenStream,
) -> (TokenStream, TokenStream, Option<Constant>) {
    let options = target.options;
    let mut literal = true;
    let policy = quote_spanned!(span=> #krate::Policy::new());
    let policy = numbers(policy, &options.numbers, None, span, krate, &mut literal);
    let name = match options.name.get() {
        Some(name) => name.to_token_stream(),
        None => target.default_name.clone(),
    };
    let mut site = quote_spanned!(span=> #private::Site::new(#name, #policy));
    for (method, limit) in [("deadline", &options.deadline), ("attempt_timeout", &options.attempt_timeout)] {
        if let Some(limit) = limit.get() {
            let method = Ident::new(method, span);
            let value = known(limit, &bound_name(None, &method.to_string()), span, &mut literal, |limit| {
                duration_tokens(*limit, span)
            });
            site = quote_spanned!(span=> #site.#method(#value));
        }
    }
    if options.unknown.get() == Some(&Unknown::Retry) {
        site = quote_spanned!(span=> #site.retry_unknown());
    }
    if options.idempotent.get() == Some(&false) {
        site = quote_spanned!(span=> #site.not_idempotent());
    }
    if options.nested.get() == Some(&Nested::OuterOnly) {
        site = quote_spanned!(span=> #site.outer_only());
    }
    if options.policy.is_set() || !options.classes.is_empty() {
        site = quote_spanned!(span=> #site.may_retry());
    }
    if literal {
        let at = quote_spanned!(span=> const { &#private::At::site(const { &#site }) });
        let facts = match options.numbers.max_retries.get() {
            _ if options.nested.get() == Some(&Nested::OuterOnly) => None,
            Some(Count::Limited(Known::Literal(count, _))) => Some(quote_spanned!(span=> #name, #count)),
            None => Some(quote_spanned!(span=> #name, #private::MAX_RETRIES)),
            Some(_) => None,
        };
        (TokenStream::new(), quote_spanned!(span=> const { &#site }), Some(Constant { at, facts }))
    } else {
        (quote_spanned!(span=> let __retry_site = &#site.checked();), quote_spanned!(span=> __retry_site), None)
    }
}

/// A policy, or a class's limits, with the numbers that are given.
pub(super) fn numbers(
    mut policy: TokenStream,
    numbers: &Numbers,
    class: Option<usize>,
    span: Span,
    krate: &TokenStream,
    literal: &mut bool,
) -> TokenStream {
    let name_of = |name: &str| bound_name(class, name);
    match numbers.max_retries.get() {
        None => {}
        Some(Count::Forever) => policy = quote_spanned!(span=> #policy.forever()),
        Some(Count::Limited(count)) => {
            let count = known(count, &name_of("max_retries"), span, literal, ToTokens::to_token_stream);
            policy = quote_spanned!(span=> #policy.max_retries(#count));
        }
    }
    let delays = [
        ("base_delay", &numbers.base_delay),
        ("max_delay", &numbers.max_delay),
        ("max_retry_after", &numbers.max_retry_after),
    ];
    for (name, delay) in delays {
        if let Some(delay) = delay.get() {
            let value = known(delay, &name_of(name), span, literal, |delay| duration_tokens(*delay, span));
            let method = Ident::new(name, span);
            policy = quote_spanned!(span=> #policy.#method(#value));
        }
    }
    if let Some(backoff) = numbers.backoff.get() {
        let backoff = match backoff {
            Backoff::Exponential(None) => quote_spanned!(span=> Exponential(2.0)),
            Backoff::Exponential(Some(factor)) => {
                let factor = known(factor, &name_of("factor"), span, literal, ToTokens::to_token_stream);
                quote_spanned!(span=> Exponential(#factor))
            }
            Backoff::Fixed => quote_spanned!(span=> Fixed),
            Backoff::Linear => quote_spanned!(span=> Linear),
            Backoff::Fibonacci => quote_spanned!(span=> Fibonacci),
            Backoff::Custom => {
                *literal = false;
                let custom = Ident::new(&name_of("backoff"), span);
                quote_spanned!(span=> Custom(#custom))
            }
        };
        policy = quote_spanned!(span=> #policy.backoff(#krate::Backoff::#backoff));
    }
    if let Some(jitter) = numbers.jitter.get() {
        let jitter = match jitter {
            Jitter::None => quote_spanned!(span=> None),
            Jitter::Full => quote_spanned!(span=> Full),
            Jitter::Equal => quote_spanned!(span=> Equal),
            Jitter::Decorrelated => quote_spanned!(span=> Decorrelated),
            Jitter::Additive(added) => {
                let added = known(added, &name_of("jitter"), span, literal, |added| duration_tokens(*added, span));
                quote_spanned!(span=> Additive(#added))
            }
        };
        policy = quote_spanned!(span=> #policy.jitter(#krate::Jitter::#jitter));
    }
    policy
}

/// A literal as it is, or the binding that holds the computed value.
pub(crate) fn known<T>(
    value: &Known<T>,
    name: &str,
    span: Span,
    literal: &mut bool,
    write: impl Fn(&T) -> TokenStream,
) -> TokenStream {
    match value {
        Known::Literal(value, _) => write(value),
        Known::Computed(expr) => {
            *literal = false;
            let name = Ident::new(name, mixed_at(first_span(expr)));
            quote_spanned!(span=> *#name)
        }
    }
}
