//! The head of the implementation: the type's generics as written, and bounds where a field is asked.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{DeriveInput, GenericParam, Generics};

use super::model::{Case, Model};
use super::tokens::{mentions, repeated};

// Input:  enum E<T: Debug = u8> where T: Copy { .. }, and the bounds `T: Classify`
// Output: #[automatically_derived] impl<T: Debug> ::retry_runtime::Classify for E<T> where T: Copy, T: Classify
pub(super) fn head(input: &DeriveInput, implemented: &TokenStream, bounds: &[TokenStream]) -> TokenStream {
    let generics = without_attributes(&input.generics);
    let (impl_generics, type_generics, _) = generics.split_for_impl();
    let written = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let predicates: Vec<TokenStream> =
        written.map(ToTokens::to_token_stream).chain(bounds.iter().cloned()).map(repeated).collect();
    let where_clause = if predicates.is_empty() { TokenStream::new() } else { quote!(where #(#predicates,)*) };
    let [impl_generics, type_generics, name] =
        [impl_generics.to_token_stream(), type_generics.to_token_stream(), input.ident.to_token_stream()].map(repeated);
    quote! {
        #[automatically_derived]
        impl #impl_generics #implemented for #name #type_generics #where_clause
    }
}

/// A bound for every asked field whose type depends on a parameter, and no other. A field that leads back to the type
/// itself gets none: the implementation being written is its own proof.
pub(super) fn bounds(model: &Model<'_>) -> Vec<TokenStream> {
    let parameters: Vec<String> = model.input.generics.params.iter().filter_map(name).collect();
    let itself = ["Self".to_string(), model.input.ident.to_string()];
    let mut seen = Vec::new();
    let mut bounds = Vec::new();
    for (role, asked) in model.cases.iter().flat_map(Case::asked) {
        let ty = asked.ty.to_token_stream();
        let once = (role, ty.to_string());
        if mentions(ty.clone(), &parameters) && !mentions(ty.clone(), &itself) && !seen.contains(&once) {
            let path = role.asks(&model.krate);
            bounds.push(quote!(#ty: #path));
            seen.push(once);
        }
    }
    bounds
}

/// The name of a parameter that a field's type may depend on. What differs by lifetime alone is asked as it is.
fn name(parameter: &GenericParam) -> Option<String> {
    match parameter {
        GenericParam::Type(parameter) => Some(parameter.ident.to_string()),
        GenericParam::Const(parameter) => Some(parameter.ident.to_string()),
        GenericParam::Lifetime(_) => None,
    }
}

/// Attributes of parameters speak to other derives, and mean nothing on an implementation.
fn without_attributes(generics: &Generics) -> Generics {
    let mut generics = generics.clone();
    for parameter in &mut generics.params {
        match parameter {
            GenericParam::Type(parameter) => parameter.attrs.clear(),
            GenericParam::Const(parameter) => parameter.attrs.clear(),
            GenericParam::Lifetime(parameter) => parameter.attrs.clear(),
        }
    }
    generics
}
