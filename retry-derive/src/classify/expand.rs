//! From the model to code. Nothing is decided here.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{ExprPath, Member};

use super::generics::{bounds, head};
use super::model::{Answer, Asked, Case, Details, Model, Role};
use super::table::{DISPOSITIONS, Word};
use super::tokens::{ours, repeated};

// Input:  enum E { #[classify(retryable)] Busy, #[classify(transparent)] Inner(T) }
// Output: impl<T> Classify for E<T> where T: Classify {
//             fn classify(&self) -> Verdict {
//                 match *self {
//                     Self::Busy { .. } => Verdict::new(Disposition::Retryable, "busy"),
//                     Self::Inner { 0: ref inner, .. } => Classify::classify(&*inner),
//                 }
//             }
//             fn describe(&self) -> Option<String> { Probe::new(self).__retry_describe() }
//         }
pub(super) fn expand(model: &Model<'_>) -> TokenStream {
    let krate = &model.krate;
    let arms = model.cases.iter().map(|case| arm(model, case));
    let head = head(model.input, &quote!(#krate::Classify), &bounds(model));
    let classes = classes(model);
    quote! {
        #head {
            fn classify(&self) -> #krate::Verdict {
                match *self {
                    #(#arms)*
                }
            }

            fn describe(&self) -> #krate::__private::Option<#krate::__private::String> {
                #krate::__private::classify::Probe::new(self).__retry_describe()
            }
        }

        #classes
    }
}

// Input:  enum E { #[classify(retryable)] Busy, #[classify(transparent)] Inner(T) }
// Output: impl<T> ClassNames for E<T> {
//             const OWN: Own = Own::open("E", &["busy"]);
//             fn more(found: &mut Found) { found.inner(Known::of(FIELD)..); }
//         }
fn classes(model: &Model<'_>) -> TokenStream {
    let krate = &model.krate;
    let classify = quote!(#krate::__private::classify);
    let mut names: Vec<&str> = Vec::new();
    let mut more = TokenStream::new();
    for case in &model.cases {
        match &case.answer {
            Answer::Fixed { class, .. } | Answer::Rules { class: Some(class), .. } => {
                if !names.contains(&class.as_str()) {
                    names.push(class);
                }
            }
            Answer::Rules { rules, name, .. } => {
                let (local, bound) = bound_rules(krate, rules.as_ref());
                more.extend(quote!({ #bound found.rules(#local, #name); }));
            }
            Answer::Transparent(inner) => {
                // the field tells its type by itself: named here, an unknown one would be reported twice
                let head = variant_path(case);
                let (member, name) = (repeated(inner.member.to_token_stream()), binding(inner));
                more.extend(quote! {
                    found.inner(#classify::Known::of(|this: &Self| match *this {
                        Self #head { #member: ref #name, .. } => #name,
                        _ => loop {},
                    }).__retry_look());
                });
            }
            Answer::With(_) => more.extend(quote!(found.anything();)),
        }
    }
    let name = model.input.ident.unraw().to_string();
    let head = head(model.input, &quote!(#classify::ClassNames), &[]);
    if more.is_empty() {
        return quote!(#head {
            const OWN: #classify::Own = #classify::Own::closed(#name, &[#(#names),*]);
        });
    }
    quote!(#head {
        const OWN: #classify::Own = #classify::Own::open(#name, &[#(#names),*]);

        fn more(found: &mut #classify::Found) {
            #[allow(unused_imports)] // a type with names of its own answers without the trait
            use #classify::AnyClass as _;
            #more
        }
    })
}

/// `Self::Variant { 0: ref status, .. } => verdict,`
fn arm(model: &Model<'_>, case: &Case<'_>) -> TokenStream {
    let krate = &model.krate;
    let head = variant_path(case);
    let mut bound = Vec::new();
    let mut fields = TokenStream::new();
    for (_, asked) in case.asked() {
        let name = binding(asked);
        if !bound.contains(&name) {
            let member = repeated(asked.member.to_token_stream());
            fields.extend(quote!(#member: ref #name,));
            bound.push(name);
        }
    }
    let verdict = match &case.answer {
        Answer::Fixed { word, class, details } => {
            let disposition = disposition(*word);
            let verdict = quote!(#krate::Verdict::new(#krate::Disposition::#disposition, #class));
            with_details(krate, &verdict, details)
        }
        Answer::Rules { status, message, rules, name, class, details } => {
            let none = quote!(#krate::__private::Option::None);
            let status = status.as_ref().map_or(none, |asked| read(krate, Role::Status, asked));
            let message = message.as_ref().map_or(quote!(""), |asked| {
                let message = read(krate, Role::Message, asked);
                quote!(&#message)
            });
            let (local, bound) = bound_rules(krate, rules.as_ref());
            let verdict = quote! {{
                #bound
                #krate::__private::classify::by_rules(#local, #status, #message, #name)
            }};
            let verdict = match class {
                Some(class) => quote!(#krate::__private::classify::with_class(#verdict, #class)),
                None => verdict,
            };
            with_details(krate, &verdict, details)
        }
        Answer::Transparent(inner) => read(krate, Role::Transparent, inner),
        Answer::With(path) => {
            let local = Ident::new("__retry_with", ours(path.span()));
            quote! {{
                let #local: fn(&Self) -> #krate::Verdict = #path;
                #local(self)
            }}
        }
    };
    quote!(Self #head { #fields .. } => #verdict,)
}

/// `::Variant`; nothing for a struct.
fn variant_path(case: &Case<'_>) -> Option<TokenStream> {
    case.variant.map(|variant| {
        let variant = repeated(variant.to_token_stream());
        quote!(::#variant)
    })
}

/// `let rules: &StatusRules = &PATH;`, the same wherever it stands: a mistake in it is then reported once.
fn bound_rules(krate: &TokenStream, rules: Option<&ExprPath>) -> (Ident, TokenStream) {
    let (rules, span) = match rules {
        Some(path) => (path.to_token_stream(), ours(path.span())),
        None => (quote!(#krate::classify::StatusRules::HTTP), Span::call_site()),
    };
    let local = Ident::new("__retry_rules", span);
    let rules = quote_spanned!(span=> &#rules);
    let bound = quote!(let #local: &#krate::classify::StatusRules = #rules;);
    (local, bound)
}

fn with_details(krate: &TokenStream, verdict: &TokenStream, details: &Details<'_>) -> TokenStream {
    let mut verdict = verdict.clone();
    if let Some(asked) = &details.retry_after {
        let hint = read(krate, Role::RetryAfter, asked);
        verdict = quote!(#krate::__private::classify::with_hint(#verdict, #hint));
    }
    if details.outcome_unknown {
        verdict = quote!(#krate::Verdict::outcome_unknown(#verdict));
    }
    verdict
}

/// `Trait::method(&*binding)`, where the argument lies on the whole of the field's type: the compiler underlines that when
/// it cannot be asked. The type itself is not named, or a name unknown there would be reported twice.
fn read(krate: &TokenStream, role: Role, asked: &Asked<'_>) -> TokenStream {
    let (first, last) = ends(asked.ty.to_token_stream());
    let (mut name, path, method) = (binding(asked), role.asks(krate), role.method());
    name.set_span(last.resolved_at(name.span()));
    let borrowed = quote_spanned!(first.resolved_at(name.span())=> &*);
    quote!(#path::#method(#borrowed #name))
}

/// The spans of the first and the last token.
fn ends(tokens: TokenStream) -> (Span, Span) {
    let mut spans = tokens.into_iter().map(|token| token.span());
    let first = spans.next().unwrap_or_else(Span::call_site);
    (first, spans.last().unwrap_or(first))
}

/// A name that no constant in scope has: a pattern would compare with that instead of binding.
fn binding(asked: &Asked<'_>) -> Ident {
    let name = match &asked.member {
        Member::Named(name) => format!("__retry_{}", name.unraw()),
        Member::Unnamed(index) => format!("__retry_{}", index.index),
    };
    Ident::new(&name, asked.ty.span().resolved_at(Span::mixed_site()))
}

fn disposition(word: Word) -> Ident {
    let name = DISPOSITIONS.iter().find(|(found, ..)| *found == word).map_or("Unknown", |(.., name)| name);
    format_ident!("{name}")
}
