//! What would leave a function from inside an expression.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// The first `?`, `return`, `break`, `continue` or `.await` outside of a closure or an async block.
pub(super) fn first(tokens: TokenStream) -> Option<(TokenTree, &'static str)> {
    let mut operand = false;
    let mut after_dot = false;
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let dot = std::mem::replace(&mut after_dot, false);
        match &tree {
            // `a || b`
            TokenTree::Punct(punct) if punct.as_char() == '|' && operand && punct.spacing() == Spacing::Joint => {
                trees.next();
                operand = false;
            }
            // a bar where an operand is expected begins a closure: what follows, up to a comma, is its own
            TokenTree::Punct(punct) if punct.as_char() == '|' && !operand => {
                while trees
                    .peek()
                    .is_some_and(|next| !matches!(next, TokenTree::Punct(punct) if punct.as_char() == ','))
                {
                    trees.next();
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == '?' => {
                let maybe_sized = trees.peek().is_some_and(|next| next.to_string() == "Sized");
                if operand && !maybe_sized {
                    return Some((tree, "?"));
                }
            }
            TokenTree::Punct(punct) => {
                after_dot = punct.as_char() == '.' && punct.spacing() == Spacing::Alone;
                operand = false;
            }
            TokenTree::Ident(ident) => {
                let word = ident.to_string();
                match word.as_str() {
                    "return" => return Some((tree, "return")),
                    "break" => return Some((tree, "break")),
                    "continue" => return Some((tree, "continue")),
                    "await" if dot => return Some((tree, ".await")),
                    // the block of `async { .. }` and `async move { .. }` is its own
                    "async" => {
                        while trees.peek().is_some_and(|next| !is_braces(next)) {
                            trees.next();
                        }
                        trees.next();
                    }
                    _ => {}
                }
                operand = !matches!(word.as_str(), "move" | "in" | "as" | "mut" | "ref" | "if" | "match" | "else");
            }
            TokenTree::Group(group) => {
                if let Some(found) = first(group.stream()) {
                    return Some(found);
                }
                operand = true;
            }
            TokenTree::Literal(_) => operand = true,
        }
    }
    None
}

fn is_braces(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}
