//! A stub beside errors, so that one mistake gives one message: without it every use of the type would report a missing
//! `Classify` as well.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Path};

use super::generics::head;
use super::model::krate;

// Input:  an enum or struct with mistakes
// Output: impl Classify for Name { fn classify(&self) -> Verdict { Verdict::unknown("unclassified") } }
pub(super) fn fallback(input: &DeriveInput, path: Option<&Path>) -> TokenStream {
    let krate = krate(path);
    let head = head(input, &quote!(#krate::Classify), &[]);
    quote! {
        #head {
            fn classify(&self) -> #krate::Verdict {
                #krate::Verdict::unknown("unclassified")
            }
        }
    }
}
