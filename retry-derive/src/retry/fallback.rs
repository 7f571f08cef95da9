//! What is emitted beside errors: the user's own code, so that one mistake does not become another at every use of it.

use proc_macro2::{Delimiter, Group, TokenStream};
use quote::quote_spanned;
use syn::Type;

use super::args::{self, Arguments, mixed_at};
use super::expand::{inferred, paths};
use super::model::Options;
use super::parse::{self, Inline, Item};
use crate::value::first_span;

/// The item, without a loop. Two things only the loop would give it are put in: the name of a new context, and the way
/// from the body's error to the report about it.
pub(super) fn item(item: &TokenStream, options: &Options) -> TokenStream {
    let Ok(Item::Function(function)) = parse::item(item.clone()) else { return item.clone() };
    let signature = &function.signature;
    let Some(output) = super::check::output(signature) else { return item.clone() };
    let arguments = Arguments::of(signature);
    let context = options.context.get().filter(|name| arguments.find(name).is_none());
    let reports = args::mentions(&quote_spanned!(first_span(output)=> #output), "GaveUp");
    let boxed = args::mentions(&quote_spanned!(first_span(output)=> #output), "async_trait");
    if boxed || (context.is_none() && !reports) {
        return item.clone();
    }
    let mut before = TokenStream::new();
    if let Some(name) = context {
        let span = mixed_at(name.span());
        let (krate, _) = paths(options, span);
        before = quote_spanned!(span=> let #name = &mut #krate::RetryContext::new(); let _ = &#name;);
    }
    let asynchronous = signature.asyncness.is_some();
    let body = if reports { once(options, asynchronous, output, &function.body) } else { function.body.stream() };
    let mut block = Group::new(Delimiter::Brace, quote_spanned!(function.body.span()=> #before #body));
    block.set_span(function.body.span());
    let (attrs, vis) = (&function.attrs, &function.vis);
    quote_spanned!(function.body.span()=> #(#attrs)* #vis #signature #block)
}

/// The body of `retrying!`, run once.
pub(super) fn inline(inline: &Inline, options: &Options) -> TokenStream {
    let output = &inline.output;
    let mut before = TokenStream::new();
    if let Some(name) = options.context.get() {
        before = quote_spanned!(mixed_at(name.span())=> let _ = &#name;);
    }
    let value = once(options, inline.asynchronous.is_some(), output, &inline.body);
    quote_spanned!(inline.body.span()=> #before #value)
}

/// One attempt, and an error that is never converted.
fn once(options: &Options, asynchronous: bool, output: &Type, body: &Group) -> TokenStream {
    let span = mixed_at(first_span(output));
    let place = mixed_at(body.span_open());
    let (_, private) = paths(options, span);
    let reports = args::mentions(&quote_spanned!(span=> #output), "GaveUp");
    let ret = inferred(output);
    let ty = if reports {
        quote_spanned!(span=> <#ret as #private::Returns<#private::Report>>::Body)
    } else {
        quote_spanned!(span=> #ret)
    };
    let run = if asynchronous {
        let inside = body.stream();
        quote_spanned!(place=> async {
            if let #private::Option::Some(__retry_never) = #private::Option::None::<#ty> {
                return __retry_never;
            }
            #inside
        }.await)
    } else {
        quote_spanned!(place=> (|| -> #ty #body)())
    };
    if !reports {
        return run;
    }
    quote_spanned! {span=>
        match #run {
            ::core::result::Result::Ok(__retry_value) => ::core::result::Result::Ok(__retry_value),
            ::core::result::Result::Err(_) => loop {},
        }
    }
}
