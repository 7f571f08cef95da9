//! What a function's arguments are called, and how each attempt gets at them.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::punctuated::Punctuated;
use syn::{Attribute, FnArg, Ident, Pat, PatIdent, ReceiverKind, Signature, Token, Type};

use crate::diag::Diag;

/// A name that an argument binds.
pub(crate) struct Argument {
    pub(crate) ident: Ident,
    pub(crate) mutability: Option<Token![mut]>,
    /// The `cfg` attributes of its parameter.
    cfgs: Vec<Attribute>,
    /// It is `name: &mut T`.
    unique_reference: bool,
}

impl Argument {
    /// Whether its type is written `&mut T`.
    pub(crate) fn is_unique_reference(&self) -> bool {
        self.unique_reference
    }
}

/// How the receiver is written.
pub(crate) enum SelfKind {
    /// No receiver.
    None,
    /// `&mut self`
    Unique,
    /// `mut self`
    MutValue(Span),
    /// Any other.
    Other,
}

/// The arguments of a function.
pub(crate) struct Arguments {
    pub(crate) receiver: SelfKind,
    pub(crate) named: Vec<Argument>,
    /// `ref mut` bindings, which no attempt can be given afresh.
    pub(crate) ref_mut: Vec<Span>,
    /// The token `self`, with the hygiene of the user's.
    self_token: Option<Token![self]>,
}

impl Arguments {
    /// The arguments of a signature.
    pub(crate) fn of(signature: &Signature) -> Self {
        let mut found = Self { receiver: SelfKind::None, named: Vec::new(), ref_mut: Vec::new(), self_token: None };
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    found.self_token = Some(receiver.self_token);
                    found.receiver = match (&receiver.kind, &receiver.mutability) {
                        (ReceiverKind::Reference(_, _, Some(_)), _) => SelfKind::Unique,
                        (ReceiverKind::Typed(_, ty), None) if is_unique_reference(ty) => SelfKind::Unique,
                        (_, Some(token)) => SelfKind::MutValue(token.span),
                        _ => SelfKind::Other,
                    };
                }
                FnArg::Typed(typed) => {
                    let cfgs: Vec<_> = typed.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
                    let unique = is_unique_reference(&typed.ty);
                    walk(&typed.pat, &mut |binding| found.bind(binding, &cfgs, unique));
                }
            }
        }
        found
    }

    /// Adds the names that `let` patterns bind (the lines that `async_trait` writes for by-value arguments).
    pub(crate) fn rebind(&mut self, pattern: &Pat) {
        let mut bound = Vec::new();
        walk(pattern, &mut |binding| bound.push((binding.ident.clone(), binding.mutability)));
        for (ident, mutability) in bound {
            if let Some(argument) = self.named.iter_mut().find(|argument| argument.ident == ident) {
                argument.ident = ident;
                argument.mutability = mutability;
            } else {
                self.named.push(Argument { ident, mutability, cfgs: Vec::new(), unique_reference: false });
            }
        }
    }

    fn bind(&mut self, binding: &PatIdent, cfgs: &[Attribute], unique_reference: bool) {
        if let (Some(by_ref), Some(_)) = (&binding.by_ref, &binding.mutability) {
            self.ref_mut.push(by_ref.span);
        }
        self.named.push(Argument {
            ident: binding.ident.clone(),
            mutability: if binding.by_ref.is_some() { None } else { binding.mutability },
            cfgs: cfgs.to_vec(),
            unique_reference,
        });
    }

    /// The names, for messages.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.named.iter().map(|argument| argument.ident.to_string()).collect();
        names.dedup();
        if !matches!(self.receiver, SelfKind::None) {
            names.insert(0, "self".to_owned());
        }
        names
    }

    pub(crate) fn find(&self, ident: &Ident) -> Option<&Argument> {
        self.named.iter().find(|argument| argument.ident == *ident)
    }

    /// The lines at the start of each attempt that give it its arguments.
    ///
    /// ```text
    /// fn f(mut offset: u32, body: String)      // clone(body)
    /// let mut offset = fresh(&offset);         // a copy of the caller's value
    /// let body = Clone::clone(&body);
    /// ```
    pub(crate) fn fresh(&self, private: &TokenStream, clone: &[Ident], share: &[Ident]) -> TokenStream {
        let mut lines = TokenStream::new();
        for argument in &self.named {
            let Argument { ident, mutability, cfgs, unique_reference } = argument;
            let span = mixed_at(ident.span());
            let value = if clone.contains(ident) {
                quote_spanned!(span=> ::core::clone::Clone::clone(&#ident))
            } else if mutability.is_none() || share.contains(ident) {
                continue;
            } else if *unique_reference {
                quote_spanned!(span=> &mut *#ident)
            } else {
                quote_spanned!(span=> #private::Fresh::fresh(&#ident))
            };
            lines.extend(quote_spanned!(span=> #(#cfgs)* let #mutability #ident = #value;));
        }
        lines
    }

    /// A branch never taken that moves the arguments of `clone(..)`: the body may consume them, so lints about arguments that
    /// could be borrowed have nothing to say.
    pub(crate) fn consumed(&self, private: &TokenStream, clone: &[Ident], span: Span) -> TokenStream {
        let moves = self.named.iter().filter(|argument| clone.contains(&argument.ident));
        let moves: TokenStream = moves
            .map(|Argument { ident, cfgs, .. }| {
                let span = mixed_at(ident.span());
                quote_spanned!(span=> #(#cfgs)* let _moved = #ident;)
            })
            .collect();
        if moves.is_empty() {
            return moves;
        }
        quote_spanned! {span=>
            if let #private::Option::Some(__retry_never) = #private::Option::None::<::core::convert::Infallible> {
                #moves
                match __retry_never {}
            }
        }
    }

    /// Makes each attempt borrow `&mut` arguments that its body names uniquely, even where the body only reads through
    /// them: a shared capture would ask the type for `Sync`, which the plain function does not.
    pub(crate) fn captured_uniquely(&self, body: &TokenStream) -> TokenStream {
        let mut lines = TokenStream::new();
        if let (SelfKind::Unique, Some(token)) = (&self.receiver, &self.self_token) {
            if mentions(body, "self") {
                let span = mixed_at(token.span);
                lines.extend(quote_spanned!(span=> let _ = &mut *#token;));
            }
        }
        for Argument { ident, cfgs, unique_reference, mutability } in &self.named {
            if *unique_reference && mutability.is_none() && mentions(body, &ident.to_string()) {
                let span = mixed_at(ident.span());
                lines.extend(quote_spanned!(span=> #(#cfgs)* let _ = &mut *#ident;));
            }
        }
        lines
    }
}

/// Takes `mut` away from the by-value bindings that each attempt binds again, so that `unused_mut` speaks of the attempt.
pub(crate) fn strip_mut(inputs: &mut Punctuated<FnArg, Token![,]>, clone: &[Ident], keep: &[Ident]) {
    for input in inputs {
        if let FnArg::Typed(typed) = input {
            let again = matches!(&*typed.pat, Pat::Ident(binding) if clone.contains(&binding.ident)
                || (binding.mutability.is_some() && !keep.contains(&binding.ident)));
            walk_mut(&mut typed.pat, &mut |binding| {
                if binding.by_ref.is_none() && !keep.contains(&binding.ident) {
                    binding.mutability = None;
                }
            });
            shadowable(&mut typed.pat, again);
        }
    }
}

/// `name @ _` for an argument that each attempt binds again: a pattern that is not all the user's, so that lints about
/// shadowed names leave it alone.
fn shadowable(pattern: &mut Pat, again: bool) {
    if let Pat::Ident(binding) = pattern {
        if again && binding.subpat.is_none() && binding.by_ref.is_none() {
            let span = mixed_at(binding.ident.span());
            let wild = Pat::Wild(syn::PatWild { attrs: Vec::new(), underscore_token: Token![_](span) });
            binding.subpat = Some((Token![@](span), Box::new(wild)));
        }
    }
}

/// The same for one pattern.
pub(crate) fn strip_mut_of(pattern: &mut Pat, keep: &[Ident]) {
    walk_mut(pattern, &mut |binding| {
        if binding.by_ref.is_none() && !keep.contains(&binding.ident) && binding.ident != "__self" {
            binding.mutability = None;
        }
    });
}

/// A span that no user code can name, at a place of the user's.
pub(crate) fn mixed_at(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

fn is_unique_reference(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => reference.mutability.is_some(),
        Type::Group(group) => is_unique_reference(&group.elem),
        Type::Paren(paren) => is_unique_reference(&paren.elem),
        _ => false,
    }
}

/// Whether tokens name an identifier: as a variable, or inside a format string.
pub(crate) fn mentions(tokens: &TokenStream, name: &str) -> bool {
    let mut after_dot = false;
    tokens.clone().into_iter().any(|tree| {
        let field =
            std::mem::replace(&mut after_dot, matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '.'));
        match tree {
            TokenTree::Ident(ident) => !field && ident == name,
            TokenTree::Group(group) => mentions(&group.stream(), name),
            TokenTree::Literal(literal) => literal.to_string().contains(&format!("{{{name}")),
            TokenTree::Punct(_) => false,
        }
    })
}

macro_rules! walker {
    ($name:ident, $callback:ident, [$($mutability:tt)?], $iter:ident) => {
        fn $name(pattern: &$($mutability)? Pat, $callback: &mut impl FnMut(&$($mutability)? PatIdent)) {
            match pattern {
                Pat::Ident(binding) => {
                    $callback(binding);
                    if let Some((_, inner)) = &$($mutability)? binding.subpat {
                        $name(inner, $callback);
                    }
                }
                Pat::Or(or) => or.cases.$iter().for_each(|case| $name(case, $callback)),
                Pat::Paren(paren) => $name(&$($mutability)? paren.pat, $callback),
                Pat::Reference(reference) => $name(&$($mutability)? reference.pat, $callback),
                Pat::Slice(slice) => slice.elems.$iter().for_each(|elem| $name(elem, $callback)),
                Pat::Struct(fields) => {
                    fields.fields.$iter().for_each(|field| $name(&$($mutability)? field.pat, $callback));
                }
                Pat::Tuple(tuple) => tuple.elems.$iter().for_each(|elem| $name(elem, $callback)),
                Pat::TupleStruct(tuple) => tuple.elems.$iter().for_each(|elem| $name(elem, $callback)),
                Pat::Type(typed) => $name(&$($mutability)? typed.pat, $callback),
                _ => {}
            }
        }
    };
}

walker!(walk, callback, [], iter);
walker!(walk_mut, callback, [mut], iter_mut);

/// Calls back for every identifier pattern.
pub(crate) fn bindings(pattern: &Pat, callback: &mut impl FnMut(&PatIdent)) {
    walk(pattern, callback);
}

/// Reports names of `clone(..)` and `share(..)` that are no argument.
pub(crate) fn check_names(diag: &Diag, option: &str, names: &[Ident], arguments: &Arguments) {
    let known = arguments.names();
    for (at, name) in names.iter().enumerate() {
        if names.iter().take(at).any(|earlier| earlier == name) {
            diag.error(name, format!("duplicate argument `{name}` in `{option}(..)`"));
            continue;
        }
        if !known.iter().any(|argument| name == argument) {
            let list: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            let hint = if list.is_empty() {
                "this function has no arguments".to_owned()
            } else {
                format!("the arguments are {}", list.join(", "))
            };
            diag.error(name, format!("`{option}({name})`: there is no argument called `{name}`")).help(hint);
        }
    }
}

/// `self` written as `name`, everywhere in an expression: what `async_trait` calls it.
pub(crate) fn rename_self(tokens: impl ToTokens, name: &str) -> TokenStream {
    tokens
        .to_token_stream()
        .into_iter()
        .map(|tree| match tree {
            TokenTree::Ident(ident) if ident == "self" => TokenTree::Ident(Ident::new(name, ident.span())),
            TokenTree::Group(group) => {
                let mut renamed = proc_macro2::Group::new(group.delimiter(), rename_self(group.stream(), name));
                renamed.set_span(group.span());
                TokenTree::Group(renamed)
            }
            other => other,
        })
        .collect()
}
