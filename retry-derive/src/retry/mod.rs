//! `#[retry]` and `retrying!`: parse, check, expand; on a mistake the errors, and the user's item as it was.

mod args;
mod bindings;
mod boxed;
mod cancel;
mod check;
mod classes;
mod docs;
mod epilogue;
mod exits;
mod expand;
mod fallback;
mod journal;
mod limits;
mod model;
mod nested;
mod observer;
mod parse;
mod patterns;
mod site;
mod table;

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

use self::args::{Arguments, mixed_at};
use self::check::Place;
use self::expand::Target;
use self::model::{Function, Options};
use self::parse::{Inline, Item};
use crate::diag::{Diag, guarded};

/// The attribute.
pub(crate) fn attribute(options: TokenStream, item: &TokenStream) -> TokenStream {
    guarded("#[retry]", item, || {
        let diag = Diag::new();
        let options = parse::options(&diag, options);
        let expanded = match parse::item(item.clone()) {
            Ok(Item::Function(function)) => function_item(&diag, &options, *function),
            Ok(Item::NoBody(signature)) => {
                diag.error(
                    &signature.ident,
                    "`#[retry]` needs a function body: a method without one has nothing to repeat",
                )
                .help("put `#[retry]` on the implementation");
                None
            }
            Ok(Item::Other(what, token)) => {
                diag.error(token, format!("`#[retry]` works on functions and methods, not on {what}"));
                None
            }
            Err(error) => {
                diag.syn_error(error);
                None
            }
        };
        match (diag.finish(), expanded) {
            (None, Some(expanded)) => expanded,
            (errors, _) => {
                let item = fallback::item(item, &options);
                quote!(#item #errors)
            }
        }
    })
}

/// The expression macro.
pub(crate) fn inline(input: TokenStream) -> TokenStream {
    guarded("retrying!", &TokenStream::new(), || {
        let diag = Diag::new();
        let inline = match syn::parse2::<Inline>(input) {
            Ok(inline) => inline,
            Err(error) => {
                diag.syn_error(error);
                let errors = diag.finish();
                // of any type: nothing is known of the one it should have
                return quote!({ #errors loop {} });
            }
        };
        let options = parse::options(&diag, inline.options.clone());
        let expanded = inline_block(&diag, &options, &inline);
        match diag.finish() {
            None => expanded,
            errors => {
                let body = fallback::inline(&inline, &options);
                quote!({ #errors #body })
            }
        }
    })
}

fn inline_block(diag: &Diag, options: &Options, inline: &Inline) -> TokenStream {
    let asynchronous = inline.asynchronous.is_some();
    check::options(diag, options, &Place { asynchronous, function: None });
    let span = mixed_at(inline.body.span_open());
    let target = Target {
        options,
        asynchronous,
        output: &inline.output,
        body: &inline.body,
        before: TokenStream::new(),
        default_name: quote_spanned!(span=> ::core::concat!(::core::module_path!(), "::retrying!")),
        // a name given here is one that stands outside: it is read after the call
        context_is_argument: true,
        context_is_reference: false,
        self_name: None,
    };
    let expanded = expand::expand(&target);
    quote_spanned!(span=> { #expanded })
}

fn function_item(diag: &Diag, options: &Options, mut function: Function) -> Option<TokenStream> {
    let mut arguments = Arguments::of(&function.signature);
    let boxed = boxed::recognise(diag, &function, &mut arguments).ok()?;
    let written =
        boxed.as_ref().map_or_else(|| check::output(&function.signature).cloned(), |boxed| Some(boxed.output.clone()));
    let asynchronous = boxed.is_some() || function.signature.asyncness.is_some();
    if boxed.is_none() {
        check::function(diag, &function, &arguments, written.as_ref());
    }
    check::options(diag, options, &Place { asynchronous, function: Some((&function.signature, &arguments)) });
    let output = written?;
    let span = mixed_at(function.signature.ident.span());
    let (_, private) = expand::paths(options, span);
    let empty = Vec::new();
    let (clone, share) = (options.clone.get().unwrap_or(&empty), options.share.get().unwrap_or(&empty));
    let body = boxed.as_ref().map_or_else(|| function.body.clone(), |boxed| boxed.body.clone());
    let mut before = arguments.fresh(&private, clone, share);
    if asynchronous && !borrows(&output) && boxed.is_none() {
        before.extend(arguments.captured_uniquely(&body.stream()));
    }
    let name = function.signature.ident.to_string();
    let name = name.strip_prefix("r#").unwrap_or(&name);
    let target = Target {
        options,
        asynchronous,
        output: &output,
        body: &body,
        before,
        default_name: quote_spanned!(span=> ::core::concat!(::core::module_path!(), "::", #name)),
        context_is_reference: options
            .context
            .get()
            .is_some_and(|name| arguments.find(name).is_some_and(args::Argument::is_unique_reference)),
        context_is_argument: options.context.get().is_some_and(|name| arguments.find(name).is_some()),
        self_name: boxed.as_ref().map(|_| "__self"),
    };
    let expanded = expand::expand(&target);
    let consumed = if asynchronous { TokenStream::new() } else { arguments.consumed(&private, clone, span) };
    let body = match &boxed {
        Some(boxed) => boxed.with(&function.body, &expanded, share),
        None => {
            args::strip_mut(&mut function.signature.inputs, clone, share);
            let mut body = Group::new(proc_macro2::Delimiter::Brace, quote!(#consumed #expanded));
            body.set_span(function.body.span());
            body
        }
    };
    let Function { attrs, inner_attrs, vis, signature, .. } = &function;
    let outer = inner_attrs.iter().map(|attr| {
        let mut attr = attr.clone();
        attr.style = syn::AttrStyle::Outer;
        attr
    });
    let docs = docs::section(options, attrs.iter().chain(inner_attrs));
    Some(quote!(#(#attrs)* #(#outer)* #docs #vis #signature #body))
}

/// Whether a type borrows, so that what the body returns may come out of a `&mut` argument.
fn borrows(ty: &Type) -> bool {
    borrowing(ty.to_token_stream())
}

fn borrowing(tokens: TokenStream) -> bool {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |at: usize, text: &str| trees.get(at).is_some_and(|tree| tree.to_string() == text);
    (0..trees.len()).any(|at| match trees.get(at) {
        Some(TokenTree::Punct(punct)) if punct.as_char() == '\'' => !is(at + 1, "static"),
        // `&'static T` borrows from nobody
        Some(TokenTree::Punct(punct)) if punct.as_char() == '&' => !is(at + 1, "'"),
        Some(TokenTree::Ident(word)) => word == "impl",
        Some(TokenTree::Group(group)) => borrowing(group.stream()),
        _ => false,
    })
}
