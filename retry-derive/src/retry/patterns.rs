//! `retry_on`, `stop_on` and `retry_ok`: match arms, and the checks that keep a misspelt name from matching everything.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::punctuated::Punctuated;
use syn::{Ident, Pat, PatIdent, PatStruct, Path, token};

use super::args::{self, mixed_at};
use super::expand::Names;
use super::model::{Case, Options};

/// What the patterns say of an error: `stop_on` is asked first.
pub(super) fn said(options: &Options, names: &Names) -> TokenStream {
    let Names { span, private, .. } = names;
    let mut tokens = TokenStream::new();
    let mut checks = TokenStream::new();
    for (cases, word) in [(options.stop_on.get(), "Stop"), (options.retry_on.get(), "Retry")] {
        if let Some(cases) = cases {
            let word = Ident::new(word, *span);
            tokens.extend(arms(cases, names, &quote_spanned!(*span=> #private::Said::#word)));
            checks.extend(value_checks(cases, &quote_spanned!(*span=> __retry_error), names));
        }
    }
    if tokens.is_empty() {
        return quote_spanned!(*span=> #private::Said::Nothing);
    }
    quote_spanned! {*span=>
        {
            #checks
            match __retry_error { #tokens _ => #private::Said::Nothing }
        }
    }
}

/// `bool`: whether the patterns match a value.
pub(super) fn matches(cases: &[Case], value: &TokenStream, names: &Names) -> TokenStream {
    let span = names.span;
    let arms = arms(cases, names, &quote_spanned!(span=> true));
    let checks = value_checks(cases, value, names);
    quote_spanned!(span=> { #checks match #value { #arms _ => false } })
}

fn arms(cases: &[Case], names: &Names, value: &TokenStream) -> TokenStream {
    let span = names.span;
    cases
        .iter()
        .map(|Case { pattern, guard }| {
            let mut pattern = pattern.clone();
            never_a_binding(&mut pattern);
            match guard {
                Some(guard) => quote_spanned!(span=> #pattern if #guard => #value,),
                None => quote_spanned!(span=> #pattern => #value,),
            }
        })
        .collect()
}

/// Whether a bare name of a pattern is meant to be a variant, a struct or a constant.
fn names_something(binding: &PatIdent) -> bool {
    binding.by_ref.is_none()
        && binding.mutability.is_none()
        && binding.subpat.is_none()
        && binding.ident.to_string().starts_with(char::is_uppercase)
}

/// A name such as `Busy`, which no constant has.
fn is_camel_case(ident: &Ident) -> bool {
    ident.to_string().contains(char::is_lowercase)
}

/// A bare name binds anything when it names nothing. Written `Busy {}` it cannot bind: a misspelt or forgotten one is an
/// error at its place, whatever the type around it.
fn never_a_binding(pattern: &mut Pat) {
    match pattern {
        Pat::Ident(binding) if names_something(binding) && is_camel_case(&binding.ident) => {
            let span = mixed_at(binding.ident.span());
            let mut ident = binding.ident.clone();
            ident.set_span(span);
            *pattern = Pat::Struct(PatStruct {
                attrs: Vec::new(),
                qself: None,
                path: Path::from(ident),
                brace_token: token::Brace(span),
                fields: Punctuated::new(),
                rest: None,
            });
        }
        Pat::Ident(binding) => {
            if let Some((_, inner)) = &mut binding.subpat {
                never_a_binding(inner);
            }
        }
        Pat::Or(or) => or.cases.iter_mut().for_each(never_a_binding),
        Pat::Paren(paren) => never_a_binding(&mut paren.pat),
        Pat::Reference(reference) => never_a_binding(&mut reference.pat),
        Pat::Slice(slice) => slice.elems.iter_mut().for_each(never_a_binding),
        Pat::Struct(fields) => {
            // `Variant { Field }` without a colon binds a field of that name
            let named = fields.fields.iter_mut().filter(|field| field.colon_token.is_some());
            named.for_each(|field| never_a_binding(&mut field.pat));
        }
        Pat::Tuple(tuple) => tuple.elems.iter_mut().for_each(never_a_binding),
        Pat::TupleStruct(tuple) => tuple.elems.iter_mut().for_each(never_a_binding),
        Pat::Type(typed) => never_a_binding(&mut typed.pat),
        _ => {}
    }
}

/// A name such as `LIMIT` may be a constant's, which has no other form: using it as a value makes a misspelt one an error.
fn value_checks(cases: &[Case], value: &TokenStream, names: &Names) -> TokenStream {
    let private = &names.private;
    let mut checks = TokenStream::new();
    for case in cases {
        let alternatives = alternatives(case);
        args::bindings(&case.pattern, &mut |binding| {
            let ident = &binding.ident;
            if !names_something(binding) || is_camel_case(ident) {
                return;
            }
            let span = mixed_at(ident.span());
            if alternatives.iter().any(|pattern| matches!(pattern, Pat::Ident(name) if std::ptr::eq(name, binding))) {
                checks.extend(quote_spanned!(span=> #private::names_a_value(#value, || #ident);));
            } else {
                // the type of a part is not known here
                checks.extend(quote_spanned!(span=> let _ = #ident;));
            }
        });
    }
    checks
}

/// The patterns of a case that are separated by bars.
pub(super) fn alternatives(case: &Case) -> Vec<&Pat> {
    match &case.pattern {
        Pat::Or(or) => or.cases.iter().collect(),
        other => vec![other],
    }
}
