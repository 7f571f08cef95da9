//! `observer = EXPR`, and the installed observer of every call without one.
//!
//! ```text
//! let watch = Ambient::begin_as(false, "module::f", 2);        // or begin_at(false, AT), or Observed::begin(as_observer(..), false, || AT.facts())
//! // .. and every step is told to both: &mut Watched::new(&mut record, &watch), or they are one variable
//! ```

use proc_macro2::TokenStream;
use quote::quote_spanned;

use super::args::mixed_at;
use super::expand::{Names, Target, bound};
use crate::value::first_span;

/// The installed observer.
pub(super) fn ambient(target: &Target<'_>, names: &Names) -> TokenStream {
    let Names { span, private, at, facts, .. } = names;
    let has_fallback = target.options.fallback.is_set();
    if let Some(facts) = facts {
        return quote_spanned!(*span=> #private::Ambient::begin_as(#has_fallback, #facts));
    }
    if names.at_is_constant {
        return quote_spanned!(*span=> #private::Ambient::begin_at(#has_fallback, #at));
    }
    quote_spanned!(*span=> #private::Ambient::begin(#has_fallback, || #private::At::facts(#at)))
}

/// `let __retry_watch = ..;`
pub(super) fn set_up(target: &Target<'_>, names: &Names) -> TokenStream {
    let Names { span, private, at, .. } = names;
    let has_fallback = target.options.fallback.is_set();
    let facts = quote_spanned!(*span=> || #private::At::facts(#at));
    match target.options.observer.get() {
        None => {
            let ambient = ambient(target, names);
            quote_spanned!(*span=> let __retry_watch = #ambient;)
        }
        Some(expr) => {
            // what is no observer is an error at its place
            let place = mixed_at(first_span(expr));
            let (value, at_private) = (bound("observer", expr), target.private_at(place));
            let observer = quote_spanned!(place=> #at_private::as_observer(#value));
            // each poll of an attempt borrows it uniquely
            let mutable = (target.asynchronous && !target.is_guarded()).then(|| quote_spanned!(*span=> mut));
            quote_spanned!(*span=> let #mutable __retry_watch = #private::Observed::begin(#observer, #has_fallback, #facts);)
        }
    }
}
