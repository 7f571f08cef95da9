//! Small operations on tokens that several stages need.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

/// Without the invisible groups that `macro_rules` puts around its fragments.
pub(super) fn flat(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => flat(group.stream()),
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), flat(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner).into()
            }
            other => other.into(),
        })
        .collect()
}

/// The same tokens at the same places, known as code of the derive: the compiler then spares the user warnings about
/// code that only repeats what they wrote, such as the use of a deprecated type. `$crate` means a crate only by its own
/// span, and keeps it.
pub(super) fn repeated(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut token| {
            match &mut token {
                TokenTree::Group(group) => {
                    let mut inner = Group::new(group.delimiter(), repeated(group.stream()));
                    inner.set_span(ours(group.span()));
                    token = TokenTree::Group(inner);
                }
                TokenTree::Ident(ident) if *ident == "$crate" => {}
                other => other.set_span(ours(other.span())),
            }
            token
        })
        .collect()
}

/// The same place, but known as code of the derive.
pub(super) fn ours(span: Span) -> Span {
    span.resolved_at(Span::call_site())
}

/// Whether one of the names is used in the tokens as the beginning of a path.
pub(super) fn mentions(tokens: TokenStream, names: &[String]) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens.iter().enumerate().any(|(index, token)| match token {
        TokenTree::Group(group) => mentions(group.stream(), names),
        TokenTree::Ident(ident) if names.iter().any(|name| ident == name) => {
            let before = |steps: usize| index.checked_sub(steps).and_then(|index| tokens.get(index));
            let lifetime = is(before(1), '\'');
            let behind_a_path = is(before(1), ':') && is(before(2), ':');
            // `T = u8` in a list of generic arguments sets an associated type of that name
            let set = (is(before(1), '<') || is(before(1), ','))
                && is(tokens.get(index + 1), '=')
                && !is(tokens.get(index + 2), '=');
            !(lifetime || behind_a_path || set)
        }
        _ => false,
    })
}

fn is(token: Option<&TokenTree>, letter: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == letter)
}

/// A variant's name as a class: `RateLimit` is `rate_limit`, `HTTPError` is `http_error`, `Http2Reset` is `http2_reset`.
pub(super) fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (index, letter) in letters.iter().enumerate() {
        if letter.is_uppercase() && index > 0 {
            let before = letters.get(index - 1);
            let after = letters.get(index + 1);
            let new_word = before.is_some_and(|before| before.is_lowercase() || before.is_numeric());
            let end_of_capitals =
                before.is_some_and(|before| before.is_uppercase()) && after.is_some_and(|after| after.is_lowercase());
            if new_word || end_of_capitals {
                snake.push('_');
            }
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[test]
    fn names_become_classes() {
        for (name, class) in [
            ("RateLimit", "rate_limit"),
            ("HTTPError", "http_error"),
            ("Http2Reset", "http2_reset"),
            ("E404", "e404"),
            ("IO", "io"),
            ("Io", "io"),
            ("already_snake", "already_snake"),
            ("A", "a"),
            ("ABTest", "ab_test"),
            ("Ärger", "ärger"),
            ("Foo_Bar", "foo_bar"),
        ] {
            assert_eq!(snake_case(name), class);
        }
    }

    #[test]
    fn only_uses_of_a_parameter_count() {
        let names = ["T".to_string()];
        for yes in [quote!(T), quote!(Vec<T>), quote!(T::Error), quote!(&'a [T; 3]), quote!(Box<dyn Fn(u8) -> T>)] {
            assert!(mentions(yes.clone(), &names), "{yes}");
        }
        for no in [quote!(Vec<u8>), quote!(a::T), quote!(&'T str), quote!(Box<dyn Iterator<T = u8>>)] {
            assert!(!mentions(no.clone(), &names), "{no}");
        }
    }

    #[test]
    fn invisible_groups_vanish_at_every_depth() {
        let hidden = TokenTree::Group(Group::new(Delimiter::None, quote!(x)));
        let nested = TokenTree::Group(Group::new(Delimiter::None, quote!(#hidden (#hidden))));
        assert_eq!(flat(quote!(a #nested)).to_string(), quote!(a x (x)).to_string());
    }
}
