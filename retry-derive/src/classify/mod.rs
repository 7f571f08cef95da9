//! `#[derive(Classify)]`: parse, check into a model, expand; beside errors a stub.

mod check;
mod expand;
mod fallback;
mod generics;
mod model;
mod parse;
mod slot;
mod table;
mod tokens;

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::diag::{Diag, guarded};

/// The implementation for an item, or every mistake in it.
pub(crate) fn derive(item: TokenStream) -> TokenStream {
    guarded("#[derive(Classify)]", &TokenStream::new(), || match syn::parse2::<DeriveInput>(item) {
        Ok(input) => derive_input(&input),
        Err(error) => error.to_compile_error(),
    })
}

fn derive_input(input: &DeriveInput) -> TokenStream {
    let diag = Diag::new();
    let (path, model) = check::check(input, &diag);
    match (diag.finish(), model) {
        (None, Some(model)) => expand::expand(&model),
        (errors, _) => {
            let stub = fallback::fallback(input, path.as_ref());
            quote!(#errors #stub)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the attributes are made of below: our words, and what may stand around them.
    const PIECES: &[&str] = &[
        "retryable",
        "permanent",
        "gone",
        "unknown",
        "class",
        "transparent",
        "status",
        "message",
        "rules",
        "retry_after",
        "outcome_unknown",
        "with",
        "default",
        "crate",
        "zebra",
        "=",
        "=",
        ",",
        ",",
        ",",
        "::",
        ";",
        "&",
        "'a",
        "0",
        "1",
        "-1",
        "1.5",
        "\"text\"",
        "\"\"",
        "code",
        "path::to",
        "r#type",
        "self",
        "(x)",
        "[x]",
        "{x}",
        "()",
        "#",
        "|x| x",
        "_",
        "<T>",
    ];

    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((self.0 >> 33) % u64::try_from(sides).unwrap_or(1)).unwrap_or(0)
        }

        fn attribute(&mut self) -> String {
            let count = self.roll(7);
            let pieces: Vec<&str> = (0..count).filter_map(|_| PIECES.get(self.roll(PIECES.len())).copied()).collect();
            match self.roll(16) {
                0..=2 => String::new(),
                12..=15 => "#[classify(retryable)]".into(),
                11 => "#[classify(default = gone)]".into(),
                9 => "#[classify]".into(),
                10 => "#[classify = \"x\"]".into(),
                3 => format!("#[classify[{}]]", pieces.join(" ")),
                _ => format!("#[classify({})]", pieces.join(" ")),
            }
        }
    }

    /// Whatever stands in the attributes, the macro answers with items, and never with a panic.
    #[test]
    fn any_attribute_gives_an_implementation_and_no_panic() {
        let mut dice = Dice(7);
        let (mut fine, mut refused) = (0, 0);
        for _ in 0..4000 {
            let [on_type, first, field, second] = [(); 4].map(|()| dice.attribute());
            let item = match dice.roll(3) {
                0 => format!("{on_type} struct S<'a, T: Copy> where T: 'a {{ {field} code: T, r#type: &'a u8 }}"),
                1 => format!("{on_type} struct S({field} u8, String);"),
                _ => format!("{on_type} enum E<T> {{ {first} A, {second} B({field} T), C {{ code: u16 }} }}"),
            };
            let Ok(tokens) = item.parse::<TokenStream>() else { continue };
            let out = derive(tokens);
            let text = out.to_string();
            assert!(!text.contains("a bug in the macro"), "{item}\n{text}");
            assert!(text.contains("Classify for"), "{item}\n{text}");
            assert!(syn::parse2::<syn::File>(out).is_ok(), "{item}\n{text}");
            if text.contains("compile_error") {
                refused += 1;
            } else {
                fine += 1;
            }
        }
        assert!(fine > 20 && refused > 2000, "{fine} and {refused}: the dice are loaded");
    }

    #[test]
    fn what_is_no_item_is_an_error() {
        let text = derive(quote!(
            fn f() {}
        ))
        .to_string();
        assert!(text.contains("compile_error"), "{text}");
    }
}
