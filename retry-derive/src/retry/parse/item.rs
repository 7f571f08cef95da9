//! Reading the function. Only the signature is parsed strictly; the body stays as it was typed.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, Signature, Token, Visibility};

use crate::retry::model::Function;

/// What an item turned out to be.
pub(crate) enum Item {
    Function(Box<Function>),
    /// A method without a body.
    NoBody(Box<Signature>),
    /// Not a function: what it is, and the token that says so.
    Other(String, TokenTree),
}

/// Reads a function; only the signature is parsed strictly, the body stays as it was typed.
pub(crate) fn item(tokens: TokenStream) -> syn::Result<Item> {
    let parser = |input: ParseStream<'_>| {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis: Visibility = input.parse()?;
        if let Some(other) = other_item(input)? {
            input.parse::<TokenStream>()?;
            return Ok(other);
        }
        // `default fn` of specialisation, and anything else in front of `fn`, stays a parse error of syn's
        let signature: Signature = input.parse()?;
        if input.peek(Token![;]) || input.is_empty() {
            input.parse::<TokenStream>()?;
            return Ok(Item::NoBody(Box::new(signature)));
        }
        let body = body(input)?;
        input.parse::<TokenStream>()?;
        let (inner_attrs, body) = split_inner_attrs(&body)?;
        Ok(Item::Function(Box::new(Function { attrs, inner_attrs, vis, signature, body })))
    };
    parser.parse2(tokens)
}

fn other_item(input: ParseStream<'_>) -> syn::Result<Option<Item>> {
    const WORDS: &[&str] = &[
        "enum",
        "struct",
        "union",
        "trait",
        "impl",
        "mod",
        "type",
        "static",
        "use",
        "macro_rules",
        "let",
        "loop",
        "while",
        "for",
        "match",
    ];
    let ahead = input.fork();
    let Ok(first) = ahead.parse::<TokenTree>() else { return Ok(None) };
    let word = first.to_string();
    let is_const_item = word == "const"
        && !(ahead.peek(Token![fn])
            || ahead.peek(Token![async])
            || ahead.peek(Token![unsafe])
            || ahead.peek(Token![extern]));
    let is_unsafe_item = word == "unsafe" && (ahead.peek(Token![trait]) || ahead.peek(Token![impl]));
    if WORDS.contains(&word.as_str()) || is_const_item || is_unsafe_item {
        let shown = match word.as_str() {
            "const" => "a const".to_owned(),
            "unsafe" => format!("an unsafe {}", ahead.parse::<TokenTree>()?),
            "enum" | "impl" => format!("an {word}"),
            "mod" => "a module".to_owned(),
            "type" => "a type alias".to_owned(),
            "use" => "an import".to_owned(),
            "macro_rules" => "a macro".to_owned(),
            _ => format!("a {word}"),
        };
        return Ok(Some(Item::Other(shown, first)));
    }
    Ok(None)
}

/// The braces of the body; a `$body:block` fragment arrives inside an invisible group.
fn body(input: ParseStream<'_>) -> syn::Result<Group> {
    let tree: TokenTree = input.parse()?;
    let mut tree = tree;
    loop {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return Ok(group),
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                let mut inner = group.stream().into_iter();
                match (inner.next(), inner.next()) {
                    (Some(only), None) => tree = only,
                    _ => return Err(syn::Error::new(group.span(), "a function body in braces is expected")),
                }
            }
            other => return Err(syn::Error::new(other.span(), "a function body in braces is expected")),
        }
    }
}

fn split_inner_attrs(body: &Group) -> syn::Result<(Vec<Attribute>, Group)> {
    let starts_inner = {
        let mut trees = body.stream().into_iter();
        matches!((trees.next(), trees.next()), (Some(TokenTree::Punct(a)), Some(TokenTree::Punct(b))) if a.as_char() == '#' && b.as_char() == '!')
    };
    if !starts_inner {
        return Ok((Vec::new(), body.clone()));
    }
    let parser = |input: ParseStream<'_>| Ok((input.call(Attribute::parse_inner)?, input.parse::<TokenStream>()?));
    let (attrs, rest) = parser.parse2(body.stream())?;
    let mut group = Group::new(Delimiter::Brace, rest);
    group.set_span(body.span());
    Ok((attrs, group))
}

/// `retrying!(OPTIONS; [async] -> TYPE { body })`
pub(crate) struct Inline {
    pub(crate) options: TokenStream,
    pub(crate) asynchronous: Option<Token![async]>,
    pub(crate) output: syn::Type,
    pub(crate) body: Group,
}

impl Parse for Inline {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = TokenStream::new();
        while !input.is_empty() && !input.peek(Token![;]) {
            input.parse::<TokenTree>()?.to_tokens(&mut options);
        }
        if input.is_empty() {
            return Err(syn::Error::new(
                Span::call_site(),
                "`retrying!` is written `retrying!(OPTIONS; async -> Result<T, E> { body })`, or without `async` to block",
            ));
        }
        input.parse::<Token![;]>()?;
        let asynchronous = input.parse()?;
        if !input.peek(Token![->]) {
            return Err(input.error("the type is expected here: `-> Result<T, E> { body }`"));
        }
        input.parse::<Token![->]>()?;
        let output: syn::Type = input.parse()?;
        if input.is_empty() {
            return Err(syn::Error::new_spanned(
                output,
                "the body is expected behind the type: `-> Result<T, E> { body }`",
            ));
        }
        let body = body(input)?;
        if !input.is_empty() {
            return Err(input.error("nothing is expected after the body"));
        }
        Ok(Self { options, asynchronous, output, body })
    }
}
