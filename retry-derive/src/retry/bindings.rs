//! The option expressions, bound once per call.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::Expr;

use super::args::mixed_at;
use super::expand::{Names, Target};
use super::limits::unborrowed;
use super::model::bound_name;
use crate::value::first_span;

/// A macro may hide a `?` or a `return`, which would leave the function before its first attempt. An expression with a
/// macro in it is checked in a closure as well, where leaving is an error of types; the branch is never taken, and diverges,
/// so that nothing is moved there.
fn nothing_leaves(expr: &TokenStream, names: &Names, span: Span) -> TokenStream {
    let private = &names.private;
    if !calls_macro(expr) {
        return TokenStream::new();
    }
    quote_spanned! {span=>
        if let #private::Option::Some(__retry_never) = #private::Option::None::<::core::convert::Infallible> {
            #private::discard(|| { #private::discard(&(#expr)); });
            match __retry_never {}
        }
    }
}

fn calls_macro(tokens: &TokenStream) -> bool {
    let mut after_name = false;
    let mut trees = tokens.clone().into_iter().peekable();
    while let Some(tree) = trees.next() {
        let name = std::mem::replace(&mut after_name, matches!(tree, TokenTree::Ident(_)));
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == '!' && name => {
                if matches!(trees.peek(), Some(TokenTree::Group(_))) {
                    return true;
                }
            }
            TokenTree::Group(group) if calls_macro(&group.stream()) => return true,
            _ => {}
        }
    }
    false
}

/// The option expressions: once, in the order written, before the first attempt.
pub(super) fn bindings(target: &Target<'_>, names: &Names) -> TokenStream {
    target
        .options
        .bindings
        .iter()
        .map(|binding| {
            let place = first_span(&binding.expr);
            let span = mixed_at(place);
            let name = Ident::new(&bound_name(binding.class, binding.name), span);
            let expr = match binding.name {
                // borrowed once, so that the type says whether it is made here
                "budget" | "breaker" => target.written(unborrowed(&binding.expr)),
                _ => target.written(&binding.expr),
            };
            let check = nothing_leaves(&expr, names, span);
            let ty = match binding.name {
                "max_retries" | "max_attempts" => quote_spanned!(span=> : &::core::primitive::u32),
                "factor" => quote_spanned!(span=> : &::core::primitive::f64),
                "backoff" => {
                    return quote_spanned! {span=>
                        #check
                        let #name: fn(::core::primitive::u32) -> ::core::time::Duration = #expr;
                    };
                }
                "base_delay" | "max_delay" | "max_retry_after" | "deadline" | "attempt_timeout" | "jitter" => {
                    quote_spanned!(span=> : &::core::time::Duration)
                }
                // `&STATIC` is borrowed as it is: a borrow of the borrow would only make the future larger
                "policy" if matches!(crate::value::bare(&binding.expr), Expr::Reference(_)) => {
                    return quote_spanned!(span=> #check let #name: &_ = #expr;);
                }
                "cancel" => {
                    let private = target.private_at(span);
                    return quote_spanned! {span=>
                        #check
                        let mut #name = ::core::pin::pin!(#private::cancel_future(#expr));
                    };
                }
                _ => TokenStream::new(),
            };
            quote_spanned!(span=> #check let #name #ty = &(#expr);)
        })
        .collect()
}
