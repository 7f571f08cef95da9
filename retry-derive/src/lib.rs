//! The macros of `retry-runtime`; use them through it.

mod classify;
mod diag;
mod names;

use proc_macro::TokenStream;

/// Retries a function.
#[proc_macro_attribute]
pub fn retry(_options: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// Derives a classifier.
#[proc_macro_derive(Classify, attributes(classify))]
pub fn classify(item: TokenStream) -> TokenStream {
    classify::derive(item.into()).into()
}
