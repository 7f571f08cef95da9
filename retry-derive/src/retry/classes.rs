//! `class(NAME, ..)`: other numbers for the failures of one class.

use proc_macro2::{Literal, Span, TokenStream};
use quote::quote_spanned;

use super::args::mixed_at;
use super::expand::Target;
use super::site::numbers;

impl Target<'_> {
    /// What stands before the loop for `class(..)`, and the `Classes` of an `At`.
    ///
    /// ```text
    /// const { class_is_known(&KNOWN_OF_E, "rate_limit", &[]) };
    /// let counts = Counts::<1>::new();
    /// // .. At::site(SITE).classes(Classes::new(const { &[Class::new("rate_limit", ClassLimits::new()..)] }, &counts, LOOK))
    /// ```
    pub(super) fn classes(
        &self,
        span: Span,
        krate: &TokenStream,
        private: &TokenStream,
        returns: &TokenStream,
    ) -> (TokenStream, Option<TokenStream>) {
        let classes = &self.options.classes;
        if classes.is_empty() {
            return (TokenStream::new(), None);
        }
        // what the derive knows of the error's classes
        let (mut checks, look) = if self.options.classify.is_set() {
            (TokenStream::new(), quote_spanned!(span=> #private::classify::Found::anything))
        } else if self.leaves_to_inference() {
            // no constant can speak of it, but a value can
            let look = quote_spanned! {span=>
                {
                    use #private::classify::AnyClass as _;
                    #private::known_of(__retry_shape).__retry_look()
                }
            };
            (TokenStream::new(), look)
        } else {
            let known = quote_spanned!(span=> <#private::classify::Known<#returns::Error>>);
            let also = self.own_classes();
            let checks = classes.iter().map(|class| {
                let at_name = mixed_at(class.name.span());
                let (name, private) = (&class.name, self.private_at(at_name));
                quote_spanned! {at_name=>
                    const {
                        use #private::classify::AnyClass as _;
                        #private::classify::class_is_known(&#known::OWN, #name, &[#(#also),*])
                    };
                }
            });
            let look = quote_spanned! {span=>
                {
                    use #private::classify::AnyClass as _;
                    #known::look
                }
            };
            (checks.collect(), look)
        };
        let (set_up, list) = list(self, span, krate, private);
        let count = Literal::usize_unsuffixed(classes.len());
        checks.extend(quote_spanned!(span=> #set_up let __retry_counts = #private::Counts::<#count>::new();));
        (checks, Some(quote_spanned!(span=> #private::Classes::new(#list, &__retry_counts, #look))))
    }

    /// The classes that the loop itself gives.
    fn own_classes(&self) -> Vec<&'static str> {
        let options = self.options;
        let given = [(options.attempt_timeout.is_set(), "timeout"), (options.retry_ok.is_set(), "rejected_value")];
        given.into_iter().filter_map(|(given, class)| given.then_some(class)).collect()
    }
}

/// `const { &[Class::new(NAME, NUMBERS), ..] }`, or the array that each call builds.
fn list(target: &Target<'_>, span: Span, krate: &TokenStream, private: &TokenStream) -> (TokenStream, TokenStream) {
    let mut literal = true;
    let classes = target.options.classes.iter().enumerate().map(|(index, class)| {
        let name = &class.name;
        let limits = quote_spanned!(span=> #krate::ClassLimits::new());
        let limits = numbers(limits, &class.numbers, Some(index), span, krate, &mut literal);
        quote_spanned!(span=> #private::Class::new(#name, #limits),)
    });
    let classes: TokenStream = classes.collect();
    if literal {
        (TokenStream::new(), quote_spanned!(span=> const { &[#classes] }))
    } else {
        (quote_spanned!(span=> let __retry_classes = &[#classes];), quote_spanned!(span=> __retry_classes))
    }
}
