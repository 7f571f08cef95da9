//! Methods under `#[async_trait]`, which always expands first.
//!
//! ```text
//! fn f<'life0, 'async_trait>(&'life0 self, x: T) -> Pin<Box<dyn Future<Output = RET> + Send + 'async_trait>> {
//!     Box::pin(async move {
//!         if let Some(__ret) = None::<RET> { return __ret; }
//!         let __self = self;
//!         let x = x;
//!         let __ret: RET = { <user body> };       // this block is looped
//!         __ret
//!     })
//! }
//! ```

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser;
use syn::{Pat, ReturnType, Type};

use super::args::{self, Arguments};
use super::model::Function;
use crate::diag::Diag;

/// The release of `async_trait` whose expansion this was tested with.
const TESTED: &str = "0.1.92";

/// A method that `async_trait` has expanded.
pub(crate) struct Boxed {
    /// What the method returned before it was expanded.
    pub(crate) output: Type,
    /// The block that holds the user's body.
    pub(crate) body: Group,
}

/// Recognises the shape. `Ok(None)`: an ordinary function.
///
/// # Errors
/// Reported already: the method comes from `async_trait`, and its body is of another shape.
pub(crate) fn recognise(diag: &Diag, function: &Function, arguments: &mut Arguments) -> Result<Option<Boxed>, ()> {
    let lifetimes = function.signature.generics.lifetimes();
    let expanded = lifetimes.into_iter().any(|lifetime| lifetime.lifetime.ident == "async_trait");
    let pinned = matches!(&function.signature.output, ReturnType::Type(_, ty) if ty.to_token_stream().to_string().contains("'async_trait"));
    if !expanded && !pinned {
        return Ok(None);
    }
    let found = async_block(&function.body).and_then(|block| {
        let trees: Vec<TokenTree> = block.stream().into_iter().collect();
        let (at, output) = return_value(&trees)?;
        let body = match trees.get(at)? {
            TokenTree::Group(group) => group.clone(),
            _ => return None,
        };
        Some((trees, body, output))
    });
    let Some((trees, body, output)) = found else {
        diag.error(
            &function.signature.ident,
            format!(
                "`#[retry]` does not know this shape of an `async_trait` method (tested with async_trait {TESTED})"
            ),
        )
        .help("write a native `async fn` in the trait, or retry inside the body with `retrying!`");
        return Err(());
    };
    // `__arg1`, `mut` where its pattern has one, is what the lines below take apart: no argument of the user's
    arguments.named.retain(|argument| !argument.ident.to_string().starts_with("__arg"));
    for pattern in declarations(&trees) {
        arguments.rebind(&pattern);
    }
    Ok(Some(Boxed { output, body }))
}

impl Boxed {
    /// The method's body with the loop in place of the user's block.
    pub(crate) fn with(&self, body: &Group, looped: &TokenStream, share: &[Ident]) -> Group {
        map_async_block(body, &|block| {
            let trees: Vec<TokenTree> = block.stream().into_iter().collect();
            let Some((at, _)) = return_value(&trees) else { return block.clone() };
            let mut inside = Group::new(Delimiter::Brace, looped.clone());
            inside.set_span(self.body.span());
            let mut out = TokenStream::new();
            let mut trees = without_mut(&trees, at, share);
            if let Some(last) = trees
                .iter_mut()
                .rev()
                .find(|tree| matches!(tree, TokenTree::Group(group) if group.to_string() == self.body.to_string()))
            {
                *last = TokenTree::Group(inside);
            }
            out.extend(trees);
            let mut group = Group::new(Delimiter::Brace, out);
            group.set_span(block.span());
            group
        })
    }
}

/// The block of `Box::pin(async move { .. })`, when the body is nothing else.
fn async_block(body: &Group) -> Option<Group> {
    let mut trees = body.stream().into_iter();
    let path: String = trees.by_ref().take(4).map(|tree| tree.to_string()).collect();
    let (Some(TokenTree::Group(argument)), None) = (trees.next(), trees.next()) else { return None };
    if path != "Box::pin" || argument.delimiter() != Delimiter::Parenthesis {
        return None;
    }
    let mut inside = argument.stream().into_iter();
    match (inside.next(), inside.next(), inside.next(), inside.next()) {
        (Some(word), Some(capture), Some(TokenTree::Group(block)), None)
            if word.to_string() == "async"
                && capture.to_string() == "move"
                && block.delimiter() == Delimiter::Brace =>
        {
            Some(block)
        }
        _ => None,
    }
}

/// Rewrites the async block, and keeps everything around it.
fn map_async_block(body: &Group, map: &dyn Fn(&Group) -> Group) -> Group {
    let rebuilt = |group: &Group, stream: TokenStream| {
        let mut new = Group::new(group.delimiter(), stream);
        new.set_span(group.span());
        new
    };
    let stream = body.stream().into_iter().map(|tree| match tree {
        TokenTree::Group(argument) => {
            let inside = argument.stream().into_iter().map(|tree| match tree {
                TokenTree::Group(block) => TokenTree::Group(map(&block)),
                other => other,
            });
            TokenTree::Group(rebuilt(&argument, inside.collect()))
        }
        other => other,
    });
    rebuilt(body, stream.collect())
}

/// `let __ret: RET = { .. };`: where the block stands, and the type.
fn return_value(trees: &[TokenTree]) -> Option<(usize, Type)> {
    let is = |at: usize, text: &str| trees.get(at).is_some_and(|tree| tree.to_string() == text);
    let start = (0..trees.len()).find(|&at| is(at, "let") && is(at + 1, "__ret") && is(at + 2, ":"))?;
    let equals = (start + 3..trees.len()).rev().find(|&at| is(at, "=") && is(at + 2, ";"))?;
    let output = trees.get(start + 3..equals)?.iter().cloned().collect::<TokenStream>();
    Some((equals + 1, syn::parse2(output).ok()?))
}

/// The patterns of the `let PATTERN = ..;` lines before the body.
fn declarations(trees: &[TokenTree]) -> Vec<Pat> {
    let Some((end, _)) = return_value(trees) else { return Vec::new() };
    lets(trees, end)
        .into_iter()
        .filter_map(|(from, to)| {
            let tokens: TokenStream = trees.get(from..to)?.iter().cloned().collect();
            let pattern = Pat::parse_single.parse2(tokens).ok()?;
            (!matches!(&pattern, Pat::Ident(name) if name.ident == "__self")).then_some(pattern)
        })
        .collect()
}

/// The token ranges of the patterns behind each `let`, up to `end`.
fn lets(trees: &[TokenTree], end: usize) -> Vec<(usize, usize)> {
    let is = |at: usize, text: &str| trees.get(at).is_some_and(|tree| tree.to_string() == text);
    (0..end)
        .filter(|&at| is(at, "let") && !is(at + 1, "__ret") && !(at > 0 && is(at - 1, "if")))
        .filter_map(|at| (at + 1..end).find(|&to| is(to, "=")).map(|to| (at + 1, to)))
        .collect()
}

/// The same tokens with `mut` taken from the arguments that each attempt binds again.
fn without_mut(trees: &[TokenTree], end: usize, share: &[Ident]) -> Vec<TokenTree> {
    let ranges = lets(trees, end);
    let mut out = Vec::with_capacity(trees.len());
    let mut at = 0;
    for (from, to) in ranges {
        out.extend(trees.get(at..from).into_iter().flatten().cloned());
        let tokens: TokenStream = trees.get(from..to).into_iter().flatten().cloned().collect();
        match Pat::parse_single.parse2(tokens.clone()) {
            Ok(mut pattern) => {
                args::strip_mut_of(&mut pattern, share);
                out.extend(pattern.to_token_stream());
            }
            Err(_) => out.extend(tokens),
        }
        at = to;
    }
    out.extend(trees.get(at..).into_iter().flatten().cloned());
    out
}
