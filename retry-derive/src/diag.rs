//! One collector for everything that is wrong with an input, so that a user sees all mistakes in one run.
//!
//! An error always has a place: tokens of the user's, or a span. The collector must be read with [`Diag::finish`]: one
//! that is dropped unread would swallow its errors, and panics in debug builds; [`guarded`] keeps such a panic (and any
//! other) from reaching users as one.

use std::cell::RefCell;
use std::fmt::{Display, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};

/// The mistakes found so far.
#[must_use = "errors are lost unless `finish` is called"]
pub(crate) struct Diag {
    /// `None` once read.
    errors: RefCell<Option<Vec<Entry>>>,
}

struct Entry {
    start: Span,
    end: Span,
    text: String,
}

/// An error just reported, to say more about.
pub(crate) struct Reported<'a> {
    diag: &'a Diag,
    index: usize,
}

impl Diag {
    /// An empty collector.
    pub(crate) fn new() -> Self {
        Self { errors: RefCell::new(Some(Vec::new())) }
    }

    /// Reports a mistake; all of `place` is underlined.
    pub(crate) fn error(&self, place: impl ToTokens, message: impl Display) -> Reported<'_> {
        let mut spans = place.into_token_stream().into_iter().map(|token| token.span());
        let start = spans.next().unwrap_or_else(Span::call_site);
        let end = spans.last().unwrap_or(start);
        self.push(start, end, message.to_string())
    }

    /// Reports a mistake at a span.
    pub(crate) fn error_at(&self, span: Span, message: impl Display) -> Reported<'_> {
        self.push(span, span, message.to_string())
    }

    /// Takes over the errors of a parser of `syn`'s.
    pub(crate) fn syn_error(&self, error: syn::Error) {
        for one in error {
            let tokens = one.to_compile_error();
            // the tokens of the invocation carry the first and the last span of the place
            let mut spans = tokens.into_iter().map(|token| token.span());
            let start = spans.next().unwrap_or_else(Span::call_site);
            let end = spans.last().unwrap_or(start);
            let _ = self.push(start, end, one.to_string());
        }
    }

    /// The errors as `compile_error!` invocations, items that may stand beside the user's own; `None` when there are none.
    pub(crate) fn finish(self) -> Option<TokenStream> {
        let entries = self.errors.borrow_mut().take().unwrap_or_default();
        if entries.is_empty() {
            return None;
        }
        Some(entries.iter().map(Entry::to_compile_error).collect())
    }

    fn push(&self, start: Span, end: Span, text: String) -> Reported<'_> {
        let mut errors = self.errors.borrow_mut();
        let errors = errors.get_or_insert_with(Vec::new);
        errors.push(Entry { start, end, text });
        Reported { diag: self, index: errors.len() - 1 }
    }
}

impl Drop for Diag {
    fn drop(&mut self) {
        if cfg!(debug_assertions) && !std::thread::panicking() {
            assert!(self.errors.borrow().is_none(), "a collector of errors was dropped unread");
        }
    }
}

impl Reported<'_> {
    /// Adds a line that says what to do.
    pub(crate) fn help(self, text: impl Display) -> Self {
        if let Some(entry) = self.diag.errors.borrow_mut().as_mut().and_then(|errors| errors.get_mut(self.index)) {
            let _ = write!(entry.text, "\nhelp: {text}");
        }
        self
    }
}

impl Entry {
    fn to_compile_error(&self) -> TokenStream {
        // `syn::Error` underlines from the first token's span to the last one's
        let mut first = proc_macro2::Punct::new('#', proc_macro2::Spacing::Alone);
        first.set_span(self.start);
        let mut last = first.clone();
        last.set_span(self.end);
        syn::Error::new_spanned(quote!(#first #last), &self.text).to_compile_error()
    }
}

/// Runs a macro so that a bug in it is a readable compile error beside `keep` (what must stay of the user's item), never
/// a panic.
pub(crate) fn guarded(name: &str, keep: &TokenStream, run: impl FnOnce() -> TokenStream) -> TokenStream {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let said = (panic.downcast_ref::<&str>().copied())
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        let text = format!("{name}: a bug in the macro, please report it with this item: {said}");
        let error = syn::Error::new(Span::call_site(), text).to_compile_error();
        quote!(#keep #error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_errors_come_out_in_order_with_their_help() {
        let diag = Diag::new();
        diag.error(quote!(a b), "first").help("do this").help("or that");
        diag.error_at(Span::call_site(), "second");
        let text = diag.finish().map(|tokens| tokens.to_string()).unwrap_or_default();
        let (first, second) = (text.find("first"), text.find("second"));
        assert!(first.is_some() && first < second, "{text}");
        assert!(text.contains("first\\nhelp: do this\\nhelp: or that"), "{text}");
        assert_eq!(text.matches("compile_error").count(), 2);
    }

    #[test]
    fn nothing_wrong_is_nothing_to_emit() {
        assert!(Diag::new().finish().is_none());
    }

    #[test]
    fn combined_parser_errors_stay_apart() {
        let diag = Diag::new();
        let mut both = syn::Error::new(Span::call_site(), "one");
        both.combine(syn::Error::new(Span::call_site(), "two"));
        diag.syn_error(both);
        let text = diag.finish().map(|tokens| tokens.to_string()).unwrap_or_default();
        assert_eq!(text.matches("compile_error").count(), 2);
    }

    #[test]
    fn unread_errors_are_a_bug_that_users_see_as_an_error() {
        let out = guarded(
            "#[derive(Classify)]",
            &quote!(
                struct Kept;
            ),
            || {
                let _lost = Diag::new();
                TokenStream::new()
            },
        );
        let text = out.to_string();
        assert!(text.contains("struct Kept"), "{text}");
        assert!(text.contains("compile_error"), "{text}");
        assert!(text.contains("dropped unread"), "{text}");
    }
}
