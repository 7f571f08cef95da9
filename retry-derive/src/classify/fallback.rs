//! A stub beside errors, so that one mistake gives one message: without it every use of the type would report a missing
//! `Classify` as well.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{DeriveInput, Path};

use super::model::krate;
use super::tokens::repeated;

// Input:  an enum or struct with mistakes
// Output: impl Classify for Name { fn classify(&self) -> Verdict { Verdict::unknown("unclassified") } }
pub(super) fn fallback(input: &DeriveInput, path: Option<&Path>) -> TokenStream {
    let krate = krate(path);
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let [impl_generics, type_generics, where_clause] =
        [impl_generics.to_token_stream(), type_generics.to_token_stream(), where_clause.to_token_stream()]
            .map(repeated);
    let name = repeated(input.ident.to_token_stream());
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::Classify for #name #type_generics #where_clause {
            fn classify(&self) -> #krate::Verdict {
                #krate::Verdict::unknown("unclassified")
            }
        }
    }
}
