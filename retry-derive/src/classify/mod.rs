//! `#[derive(Classify)]`: parse, check into a model, expand; beside errors a stub.

mod check;
mod expand;
mod fallback;
mod model;
mod parse;
mod slot;
mod table;
mod tokens;

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::diag::{Diag, guarded};

/// The implementation for an item, or every mistake in it.
pub(crate) fn derive(item: TokenStream) -> TokenStream {
    guarded("#[derive(Classify)]", &TokenStream::new(), || match syn::parse2::<DeriveInput>(item) {
        Ok(input) => derive_input(&input),
        Err(error) => error.to_compile_error(),
    })
}

fn derive_input(input: &DeriveInput) -> TokenStream {
    let diag = Diag::new();
    let (path, model) = check::check(input, &diag);
    match (diag.finish(), model) {
        (None, Some(model)) => expand::expand(&model),
        (errors, _) => {
            let stub = fallback::fallback(input, path.as_ref());
            quote!(#errors #stub)
        }
    }
}
